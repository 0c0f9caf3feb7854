# Puts a text file of a room into the program: `inline constexpr` cannot take 16 KB in all compilers' pedantic modes, so a
# generated .cc defines what <room>/<header>.h declares.
#
#   baton_embed(baton_app app/optimize_model.py optimize_script kOptimizeScript)
function(baton_embed target file header constant)
  set(source ${CMAKE_SOURCE_DIR}/src/${file})
  set(made ${CMAKE_BINARY_DIR}/embedded/${header}.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  get_filename_component(room ${file} DIRECTORY)
  file(READ ${source} text)
  file(CONFIGURE OUTPUT ${made} CONTENT
       "#include \"${room}/${header}.h\"\n\nnamespace baton::app {\nconst std::string_view ${constant} = R\"EMBEDDED(@text@)EMBEDDED\";\n}\n"
       @ONLY)
  target_sources(${target} PRIVATE ${made})
endfunction()
