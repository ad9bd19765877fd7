# cmake --install: the program, the scenarios beside it and the licence. The installed program finds the
# unpacked wheels where it was linked against them.
if(TARGET spes-sim)
  install(TARGETS spes-sim RUNTIME)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/spes-sim/scenarios
  FILES_MATCHING PATTERN "*.yaml" PATTERN "*.csv" PATTERN "*.trace" PATTERN "README.md"
  PATTERN "*.service" PATTERN "*.sbatch")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE TYPE DOC)
