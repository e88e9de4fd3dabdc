# Installs the build to a fresh prefix, builds the example against it with find_package, and runs it.
# Variables: BUILD, SOURCE, WORK.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV} failed (${code}):\n${output}")
  endif()
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# What the tests say of the program's file holds for the installed one: nothing of it is edited.
run(${CMAKE_COMMAND} -E compare_files ${BUILD}/zerolab ${WORK}/prefix/bin/zerolab)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/example -B ${WORK}/build -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/train_tiny)
run(${WORK}/prefix/bin/zerolab --version)
