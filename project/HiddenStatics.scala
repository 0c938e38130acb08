import java.io.{ByteArrayInputStream, DataInputStream}

import sbt._

import scala.collection.mutable

/** Makes private what SQL could call of a jar.
  *
  * SQL's `java_method` and `reflect` call any public static method whose parameters take texts, numbers and
  * booleans. Scala adds such methods: one for each method of an object, which Scala code does not use, and
  * one for each function literal, which its own class uses alone. What grants, loads or changes anything is not
  * reached by one of them, hidden or not, as `StaticMethodsSuite` sees; these do no more than SQL may.
  */
object HiddenStatics {

  private case class Method(owner: String, name: String, descriptor: String)

  /** @param flags where each of the class' static methods has its flags in the bytes */
  private case class ClassFile(name: String, calls: Set[Method], flags: Seq[(Method, Int)])

  /** All that a text, a number or a boolean is. */
  private val fromSql = {
    val named = Seq("Boolean", "Byte", "Short", "Integer", "Long", "Float", "Double", "String") ++
      Seq(
        "Number",
        "Object",
        "CharSequence",
        "Comparable",
        "constant/Constable",
        "constant/ConstantDesc"
      )
    val classes = (named.map("java/lang/" + _) :+ "java/io/Serializable").map(c => s"L$c;")
    ("\\((" + ("[ZBSIJFD]" +: classes).mkString("|") + ")*\\).*").r.pattern
  }

  /** The files of a jar with their paths there, classes among them changed into copies below a folder. */
  def apply(jar: Seq[(File, String)], folder: File): Seq[(File, String)] = {
    IO.delete(folder)
    val classes = jar.collect {
      case (file, path) if path.endsWith(".class") => path -> read(IO.readBytes(file))
    }.toMap
    val called = classes.values.flatMap(c => c.calls.filter(_.owner != c.name)).toSet
    jar.map { case (file, path) =>
      val hidden = classes.get(path).toSeq.flatMap(_.flags).filter { case (m, _) =>
        fromSql.matcher(m.descriptor).matches && !called(m)
      }
      if (hidden.isEmpty) file -> path
      else {
        val bytes = IO.readBytes(file)
        // ACC_PUBLIC is 1 and ACC_PRIVATE 2, in the second of two bytes.
        hidden.foreach { case (_, at) => bytes(at + 1) = (bytes(at + 1) & ~1 | 2).toByte }
        val copy = folder / path
        IO.write(copy, bytes)
        copy -> path
      }
    }
  }

  /** As the Java Virtual Machine Specification, chapter 4, lays a class file out. */
  private def read(bytes: Array[Byte]): ClassFile = {
    val all = new ByteArrayInputStream(bytes)
    val in = new DataInputStream(all)
    def skip(n: Int): Unit = in.skipBytes(n)
    def attributes(): Unit = (1 to in.readUnsignedShort()).foreach { _ =>
      skip(2)
      skip(in.readInt())
    }
    skip(8)
    val size = in.readUnsignedShort()
    val texts = mutable.Map.empty[Int, String]
    val pairs = mutable.Map.empty[Int, (Int, Int)]
    val names = mutable.Map.empty[Int, Int]
    val methods = mutable.Buffer.empty[(Int, Int)]
    var i = 1
    while (i < size) {
      in.readUnsignedByte() match {
        case 1                   => texts(i) = in.readUTF()
        case 7                   => names(i) = in.readUnsignedShort()
        case 10 | 11             => methods += in.readUnsignedShort() -> in.readUnsignedShort()
        case 12                  => pairs(i) = in.readUnsignedShort() -> in.readUnsignedShort()
        case 5 | 6               => skip(8); i += 1 // takes two places
        case 3 | 4 | 9 | 17 | 18 => skip(4)
        case 15                  => skip(3)
        case 8 | 16 | 19 | 20    => skip(2)
      }
      i += 1
    }
    skip(2)
    val name = texts(names(in.readUnsignedShort()))
    skip(2)
    skip(2 * in.readUnsignedShort())
    (1 to in.readUnsignedShort()).foreach { _ =>
      skip(6)
      attributes()
    }
    val flags = (1 to in.readUnsignedShort()).flatMap { _ =>
      val at = bytes.length - all.available()
      val isPublicStatic = (in.readUnsignedShort() & 9) == 9
      val method = Method(name, texts(in.readUnsignedShort()), texts(in.readUnsignedShort()))
      attributes()
      if (isPublicStatic) Some(method -> at) else None
    }
    val calls = methods.map { case (of, called) =>
      val (n, d) = pairs(called)
      Method(texts(names(of)), texts(n), texts(d))
    }
    ClassFile(name, calls.toSet, flags)
  }
}
