# The reference pages of the headers, where Doxygen is: the target sdk-reference makes them, and a warning is an error. They
# are installed if they were made.
find_program(DOXYGEN_PROGRAM doxygen)
if(DOXYGEN_PROGRAM)
  configure_file(reference/Doxyfile.in reference.doxyfile @ONLY)
  add_custom_target(sdk-reference COMMAND ${DOXYGEN_PROGRAM} ${CMAKE_CURRENT_BINARY_DIR}/reference.doxyfile
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} VERBATIM)
endif()
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/reference DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/topolet-sdk COMPONENT sdk
  OPTIONAL)
