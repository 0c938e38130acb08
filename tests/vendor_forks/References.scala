package org.apache.spark.sql.vendorforks

import java.io.{ByteArrayOutputStream, InputStream}
import java.util.zip.ZipFile

import scala.collection.mutable

import org.apache.xbean.asm9._
import org.apache.xbean.asm9.commons.{ClassRemapper, Remapper}

/** What a vendor's Spark may lack.
  *
  * @param kind
  *   `class`; `constructor`, `method` or `field`; `override`: a method of ours that would not override Spark's any
  *   more; `probe`: all methods of a name that `Health` looks for
  * @param owner
  *   the class that declares it, with slashes
  * @param descriptor
  *   of a method or field; empty for a class, and for a probe
  */
final case class Missing(kind: String, owner: String, name: String, descriptor: String) {
  def text: String = {
    val of = owner.replace('/', '.')
    kind match {
      case "class" => of
      case "probe" => s"$of.$name"
      case "field" => s"$of.$name"
      case _       => s"$of.$name${descriptor.replace('/', '.')}"
    }
  }
}

object Missing {

  /** Whether a class is Spark's, or ours among Spark's packages. */
  def isSparks(name: String): Boolean = name.startsWith("org/apache/spark/")
}

/** The methods and fields that a class declares itself. */
final private case class Declared(parents: Seq[String], members: Map[(String, String), Int])

/** The classes of our jar, and what they refer to.
  *
  * @param others
  *   finds the classes of Spark, Scala and Java
  */
final class References(jar: String, others: ClassLoader) {

  /** By name with slashes. */
  val classes: Map[String, Array[Byte]] = {
    val zip = new ZipFile(jar)
    try {
      val found = Map.newBuilder[String, Array[Byte]]
      val entries = zip.entries()
      while (entries.hasMoreElements) {
        val entry = entries.nextElement()
        if (entry.getName.endsWith(".class"))
          found += entry.getName.stripSuffix(".class") -> References.bytes(
            zip.getInputStream(entry)
          )
      }
      found.result()
    } finally zip.close()
  }

  /** Our classes that look for what Spark has, or name the one that is renamed. */
  val looking: Set[String] = classes.collect {
    case (name, code) if {
          val text = new String(code, "ISO-8859-1")
          Seq(Mutation.Shared, Mutation.SharedName, "getMethods", "forName").exists(text.contains(_))
        } =>
      name
  }.toSet

  private val known = mutable.HashMap.empty[String, Option[Declared]]

  private def declared(name: String): Option[Declared] = known.getOrElseUpdate(
    name, {
      classes.get(name).orElse(
        Option(others.getResourceAsStream(name + ".class")).map(References.bytes)
      ).map { code =>
        val reader = new ClassReader(code)
        val members = mutable.HashMap.empty[(String, String), Int]
        reader.accept(
          new ClassVisitor(Opcodes.ASM9) {
            override def visitMethod(
                access: Int,
                name: String,
                descriptor: String,
                signature: String,
                exceptions: Array[String]
            ): MethodVisitor = {
              members((name, descriptor)) = access
              null
            }
            override def visitField(
                access: Int,
                name: String,
                descriptor: String,
                signature: String,
                value: Any
            ): FieldVisitor = {
              members((name, descriptor)) = access
              null
            }
          },
          ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG
        )
        Declared(Option(reader.getSuperName).toSeq ++ reader.getInterfaces, members.toMap)
      }
    }
  )

  private def ancestors(name: String): Seq[String] = {
    val found = mutable.LinkedHashSet.empty[String]
    def add(of: String): Unit =
      declared(of).foreach(_.parents.foreach(p => if (found.add(p)) add(p)))
    add(name)
    found.toSeq
  }

  private val resolved = mutable.HashMap.empty[(String, String, String), Option[String]]

  /** The class that declares what is referred to, if it is Spark's. */
  def resolve(owner: String, name: String, descriptor: String): Option[String] =
    resolved.getOrElseUpdate(
      (owner, name, descriptor),
      (owner +: ancestors(owner)).find(declared(_).exists(_.members.contains((name, descriptor))))
        .filter(c => Missing.isSparks(c) && !classes.contains(c))
    )

  /** Spark's declarations that a method of ours overrides. */
  def overridden(owner: String, access: Int, name: String, descriptor: String): Seq[String] =
    if ((access & (Opcodes.ACC_STATIC | Opcodes.ACC_PRIVATE)) != 0 || name.startsWith("<")) Nil
    else {
      val above = ancestors(owner).filter(declared(_).exists(_.members.get((name, descriptor))
        .exists(a => (a & (Opcodes.ACC_STATIC | Opcodes.ACC_PRIVATE)) == 0)))
      if (above.contains("java/lang/Object")) Nil
      else above.filter(c => Missing.isSparks(c) && !classes.contains(c))
    }

  /** Whether Spark's declaration leaves it to us. */
  def isAbstract(m: Missing): Boolean = m.kind == "override" &&
    declared(m.owner).exists(_.members.get((m.name, m.descriptor)).exists(a =>
      (a & Opcodes.ACC_ABSTRACT) != 0
    ))

  /** Everything that our classes refer to, with the classes that do. */
  lazy val all: Map[Missing, Set[String]] = {
    val found = mutable.HashMap.empty[Missing, mutable.Set[String]]
    classes.foreach { case (name, code) =>
      def add(missing: Missing): Unit =
        found.getOrElseUpdate(missing, mutable.HashSet.empty[String]) += name
      new ClassReader(code).accept(new Collecting(name, this, add), ClassReader.SKIP_DEBUG)
    }
    found.map { case (k, v) => k -> v.toSet }.toMap
  }

  /** The references to what `Health` looks for under a name in a class. */
  def probed(owner: String, name: String): Seq[Missing] = {
    val holders = owner +: ancestors(owner)
    all.keys.filter(m => m.kind == "method" && m.name == name && holders.contains(m.owner)).toSeq
  }
}

object References {
  def bytes(in: InputStream): Array[Byte] =
    try {
      val out = new ByteArrayOutputStream
      val buffer = new Array[Byte](8192)
      Iterator.continually(in.read(buffer)).takeWhile(_ >= 0).foreach(out.write(buffer, 0, _))
      out.toByteArray
    } finally in.close()
}

/** Tells of each reference in a class. */
final private class Collecting(owner: String, references: References, add: Missing => Unit)
    extends ClassRemapper(Opcodes.ASM9, new ClassWriter(0), new Named(references, add)) {

  // What reflection alone reads.
  override def visitInnerClass(name: String, outer: String, inner: String, access: Int): Unit = ()

  override def visitMethod(
      access: Int,
      name: String,
      descriptor: String,
      signature: String,
      exceptions: Array[String]
  ): MethodVisitor = {
    references.overridden(owner, access, name, descriptor)
      .foreach(c => add(Missing("override", c, name, descriptor)))
    val inner = super.visitMethod(access, name, descriptor, signature, exceptions)
    new MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          opcode: Int,
          of: String,
          name: String,
          descriptor: String,
          isInterface: Boolean
      ): Unit = {
        method(of, name, descriptor)
        super.visitMethodInsn(opcode, of, name, descriptor, isInterface)
      }
      override def visitFieldInsn(
          opcode: Int,
          of: String,
          name: String,
          descriptor: String
      ): Unit = {
        // An object without its only field is a class that is missing.
        if (name != "MODULE$")
          references.resolve(of, name, descriptor)
            .foreach(c => add(Missing("field", c, name, descriptor)))
        super.visitFieldInsn(opcode, of, name, descriptor)
      }
      override def visitInvokeDynamicInsn(
          name: String,
          descriptor: String,
          bootstrap: Handle,
          arguments: AnyRef*
      ): Unit = {
        arguments.foreach {
          case h: Handle => method(h.getOwner, h.getName, h.getDesc)
          case _         =>
        }
        super.visitInvokeDynamicInsn(name, descriptor, bootstrap, arguments: _*)
      }
    }
  }

  private def method(of: String, name: String, descriptor: String): Unit =
    references.resolve(of, name, descriptor).foreach { c =>
      add(Missing(if (name == "<init>") "constructor" else "method", c, name, descriptor))
    }
}

/** Tells of each class of Spark's that is named. */
final private class Named(references: References, add: Missing => Unit) extends Remapper {
  override def map(name: String): String = {
    if (Missing.isSparks(name) && !references.classes.contains(name))
      add(Missing("class", name, "", ""))
    name
  }
  override def mapSignature(signature: String, isType: Boolean): String = signature
}
