#!/bin/sh
# Writes TARGET, a java that runs the one of the JAVA_HOME RUNTIME without the module that the
# wheel's runtime lacks and that Spark names but does not need.
#
#   sh scripts/java_wrapper.sh RUNTIME TARGET
set -eu
cat >"$2" <<END
#!/bin/sh
for word in "\$@"; do
    shift
    [ "\$word" = --add-modules=jdk.incubator.vector ] || set -- "\$@" "\$word"
done
exec '$1/bin/java' "\$@"
END
chmod +x "$2"
