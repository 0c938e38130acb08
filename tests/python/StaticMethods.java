import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.JavaConverters;

/**
 * What Spark finds of a jar's classes for `java_method`, by its own look-up: `test_live_sql_reflection.py`.
 *
 * The running Spark's own Janino compiles it: no generics are looked at, and no lambdas.
 */
public class StaticMethods {
    private static final DataType[] TYPES = {
        DataTypes.StringType, DataTypes.LongType, DataTypes.IntegerType, DataTypes.DoubleType,
        DataTypes.BooleanType, DataTypes.FloatType, DataTypes.ShortType, DataTypes.ByteType
    };
    private static final Class[][] CLASSES = {
        {String.class}, {Long.class, long.class}, {Integer.class, int.class}, {Double.class, double.class},
        {Boolean.class, boolean.class}, {Float.class, float.class}, {Short.class, short.class}, {Byte.class, byte.class}
    };

    /** Of each class the methods: its name, the method's, and the SQL types of the arguments, tabs between. */
    public List found(List classes) throws Exception {
        Set ours = new HashSet(classes);
        List found = new ArrayList();
        for (int i = 0; i < classes.size(); i++) {
            String name = (String) classes.get(i);
            Class c = Class.forName(name, true, Thread.currentThread().getContextClassLoader());
            Method[] methods = c.getMethods();
            for (int j = 0; j < methods.length; j++) {
                boolean isStatic = Modifier.isStatic(methods[j].getModifiers());
                // Spark's and Java's own, which a class of ours inherits, SQL calls without us.
                if (isStatic && ours.contains(methods[j].getDeclaringClass().getName())) add(found, name, methods[j]);
            }
        }
        return found;
    }

    private static void add(List found, String name, Method method) {
        Class[] parameters = method.getParameterTypes();
        DataType[] types = new DataType[parameters.length];
        StringBuffer line = new StringBuffer(name + "\t" + method.getName());
        for (int i = 0; i < parameters.length; i++) {
            for (int t = 0; t < TYPES.length && types[i] == null; t++) {
                for (int c = 0; c < CLASSES[t].length; c++) {
                    if (parameters[i].isAssignableFrom(CLASSES[t][c])) types[i] = TYPES[t];
                }
            }
            if (types[i] == null) return;
            line.append("\t" + types[i].sql());
        }
        scala.collection.mutable.Buffer given = JavaConverters.asScalaBuffer(Arrays.asList(types));
        if (CallMethodViaReflection.findMethod(name, method.getName(), given.toSeq()).isDefined()) {
            found.add(line.toString());
        }
    }
}
