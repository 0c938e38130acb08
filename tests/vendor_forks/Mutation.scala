package org.apache.spark.sql.vendorforks

import java.io.{ByteArrayInputStream, File, InputStream}
import java.lang.reflect.Method
import java.net.{URL, URLClassLoader}

import org.apache.xbean.asm9._
import org.apache.xbean.asm9.commons.{ClassRemapper, Remapper}

/** Our classes as they are linked on a Spark that lacks something: each reference to it names something that is
  * nowhere, so that the JVM throws what it would throw there.
  *
  * @param told
  *   as what [[Probes]] is told of a reference that is come to; None = it is not
  * @param number
  *   makes the name of the class unique that aqepilot gives to Spark's own class loader, which all mutants share
  */
final class Mutation(
    references: References,
    val missing: Set[Missing],
    number: Int,
    told: Option[Reached] = None
) {
  import Mutation._

  private val gone: Set[Missing] = missing.flatMap { (m: Missing) =>
    if (m.kind == "probe") references.probed(m.owner, m.name).toSet else Set(m)
  }
  private val touched: Set[String] = gone.flatMap(references.all)

  /** The classes that differ from those of the jar. */
  val classes: Map[String, Array[Byte]] = references.classes.collect {
    case (name, code) if told.isDefined || touched(name) || references.looking(name) => renamed(name) -> mutated(name, code)
  }

  private def renamed(name: String): String =
    if (name == Shared || name.startsWith(Shared + "$"))
      s"${Shared}_$number${name.stripPrefix(Shared)}"
    else name

  private def mutated(name: String, code: Array[Byte]): Array[Byte] = {
    val reader = new ClassReader(code)
    val writer = new ClassWriter(0)
    val remapper = new Remapper {
      override def map(of: String): String =
        if (gone(Missing("class", of, "", ""))) of + Gone else renamed(of)
      override def mapValue(value: Any): AnyRef = value match {
        case h: Handle => handle(h)
        case v         => super.mapValue(v)
      }
      private def handle(h: Handle): Handle = {
        val changed = called(h.getOwner, h.getName, h.getDesc)
        new Handle(
          h.getTag,
          map(h.getOwner),
          changed._1,
          mapMethodDesc(changed._2),
          h.isInterface
        )
      }
    }
    reader.accept(new Mutating(name, new ClassRemapper(writer, remapper)), 0)
    writer.toByteArray
  }

  private def member(owner: String, name: String, descriptor: String): Option[Missing] =
    references.resolve(owner, name, descriptor).map { c =>
      Missing(if (name == "<init>") "constructor" else "method", c, name, descriptor)
    }

  /** Name and descriptor of a method that is called. */
  private def called(owner: String, name: String, descriptor: String): (String, String) = {
    val member = this.member(owner, name, descriptor)
    if (member.exists(gone)) {
      if (name == "<init>") (name, descriptor.replace(")", s"L$Nothing;)"))
      else (name + Gone, descriptor)
    } else if (
      references.classes.contains(owner) &&
      references.overridden(owner, 0, name, descriptor).exists(c =>
        gone(Missing("override", c, name, descriptor))
      )
    )
      (name + Gone, descriptor)
    else (name, descriptor)
  }

  final private class Mutating(owner: String, next: ClassVisitor)
      extends ClassVisitor(Opcodes.ASM9, next) {

    override def visitMethod(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        exceptions: Array[String]
    ): MethodVisitor = {
      val overridden = references.overridden(owner, access, name, descriptor)
        .map(Missing("override", _, name, descriptor))
      val isGone = overridden.exists(gone)
      val under = if (isGone) name + Gone else name
      val inner = super.visitMethod(access, under, descriptor, signature, exceptions)
      new MethodVisitor(Opcodes.ASM9, inner) {
        private def tell(what: Iterable[Missing]): Unit =
          for (reached <- told; m <- what) {
            super.visitLdcInsn(Int.box(reached.id(m, owner)))
            super.visitMethodInsn(Opcodes.INVOKESTATIC, Probes, "hit", "(I)V", false)
          }
        override def visitCode(): Unit = {
          super.visitCode()
          tell(Missing("class", owner, "", "") +: overridden)
        }
        override def visitMethodInsn(
            opcode: Int,
            of: String,
            name: String,
            descriptor: String,
            isInterface: Boolean
        ): Unit = {
          val asked = if (of == "java/lang/Class") Asked.get((name, descriptor)) else None
          if (asked.isDefined)
            super.visitMethodInsn(Opcodes.INVOKESTATIC, Probes, name, asked.get, false)
          else {
            tell(member(of, name, descriptor))
            val (n, d) = called(of, name, descriptor)
            if (d != descriptor) super.visitInsn(Opcodes.ACONST_NULL)
            super.visitMethodInsn(opcode, of, n, d, isInterface)
          }
        }
        override def visitFieldInsn(
            opcode: Int,
            of: String,
            name: String,
            descriptor: String
        ): Unit = {
          val field =
            references.resolve(of, name, descriptor).map(Missing("field", _, name, descriptor))
          tell(field)
          super.visitFieldInsn(opcode, of, if (field.exists(gone)) name + Gone else name, descriptor)
        }
        override def visitInvokeDynamicInsn(
            name: String,
            descriptor: String,
            bootstrap: Handle,
            arguments: AnyRef*
        ): Unit = {
          arguments.foreach {
            case h: Handle => tell(member(h.getOwner, h.getName, h.getDesc))
            case _         =>
          }
          super.visitInvokeDynamicInsn(name, descriptor, bootstrap, arguments: _*)
        }
        override def visitLdcInsn(value: Any): Unit =
          super.visitLdcInsn(if (value == SharedName) SharedName + "_" + number else value)
        // A constructor that is called with one argument more.
        override def visitMaxs(stack: Int, locals: Int): Unit = super.visitMaxs(stack + 1, locals)
      }
    }
  }
}

/** A number for each reference and the class of ours that has it. */
final class Reached {
  private val ids = scala.collection.mutable.HashMap.empty[(Missing, String), Int]

  def id(what: Missing, in: String): Int = ids.getOrElseUpdate((what, in), ids.size)

  /** The classes that came to it, and [[Missing]] of a class of ours for its having run. */
  def of(hits: Set[Int]): Set[(Missing, String)] = ids.collect { case (k, id) if hits(id) => k }.toSet
}

object Mutation {
  val Gone = "$gone"
  val Nothing = "org/apache/spark/Nothing" + Gone

  /** The class that aqepilot defines in Spark's own class loader. */
  val Shared = "org/apache/spark/sql/execution/adaptive/AqePilotCostEvaluator"
  val SharedName: String = Shared.replace('/', '.')

  private val Probes = "org/apache/spark/sql/vendorforks/Probes"

  /** How aqepilot looks for what Spark has, and what is called instead. */
  private val Asked = Map(
    ("getMethods", "()[Ljava/lang/reflect/Method;") ->
      "(Ljava/lang/Class;)[Ljava/lang/reflect/Method;",
    ("forName", "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;") ->
      "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;"
  )

  /** Our jar's loader, above Spark's: as `--jars` makes one, but that its own classes come first. */
  final class Loader(jar: File, references: References, mutation: Mutation, parent: ClassLoader)
      extends URLClassLoader(Array[URL](jar.toURI.toURL), parent) {

    private def code(name: String): Option[Array[Byte]] = {
      val path = name.replace('.', '/')
      mutation.classes.get(path).orElse(references.classes.get(path))
    }

    override def loadClass(name: String, resolve: Boolean): Class[_] =
      getClassLoadingLock(name).synchronized {
        val loaded = findLoadedClass(name)
        if (loaded != null) loaded
        else
          code(name) match {
            case Some(c) => defineClass(name, c, 0, c.length)
            case None    => super.loadClass(name, resolve)
          }
      }

    override def getResourceAsStream(name: String): InputStream =
      (if (name.endsWith(".class")) code(name.stripSuffix(".class")) else None)
        .fold(super.getResourceAsStream(name))(new ByteArrayInputStream(_))
  }
}
