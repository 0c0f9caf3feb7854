#include "protocol/npy/npy.h"

#include <gtest/gtest.h>

#include <array>

#include "base/bytes.h"

namespace baton::protocol::npy {
namespace {

using namespace std::string_literals;

// As numpy.save writes it: the literal, spaces and a newline up to 128 bytes, then the data.
std::string numpy_file(const std::string& dict, const std::string& data) {
  std::string file = "\x93NUMPY\x01\x00v\x00"s + dict;
  file.resize(127, ' ');
  return file + "\n" + data;
}

std::string typed(const std::string& descr, const std::string& shape, const std::string& data) {
  return numpy_file("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }",
                    data);
}

std::string error_of(const std::string& file) {
  const auto array = read_npy(file);
  return array.has_value() ? "" : array.error();
}

// numpy.save(file, numpy.array([[1.5, -2, 3]], "<f4")) of NumPy 2.
const std::string kFloats =
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }          "
    "                                                \n\x00\x00\xc0?\x00\x00\x00\xc0\x00\x00@@"s;

TEST(ReadNpy, ReadsWhatNumpyWrote) {
  const auto array = read_npy(kFloats);
  ASSERT_TRUE(array.has_value()) << array.error();
  EXPECT_EQ(array->type, DataType::kFp32);
  EXPECT_EQ(array->shape, (Shape{1, 3}));
  EXPECT_EQ(as_chars(array->data), "\x00\x00\xc0?\x00\x00\x00\xc0\x00\x00@@"s);
}

TEST(ReadNpy, KnowsEveryNumberType) {
  const std::array<std::pair<const char*, DataType>, 14> types = {{{"|b1", DataType::kBool},
                                                                   {"|u1", DataType::kUint8},
                                                                   {"<u2", DataType::kUint16},
                                                                   {"<u4", DataType::kUint32},
                                                                   {"<u8", DataType::kUint64},
                                                                   {"|i1", DataType::kInt8},
                                                                   {"<i2", DataType::kInt16},
                                                                   {"<i4", DataType::kInt32},
                                                                   {"<i8", DataType::kInt64},
                                                                   {"<f2", DataType::kFp16},
                                                                   {"<V2", DataType::kBf16},
                                                                   {"|V2", DataType::kBf16},
                                                                   {"<f4", DataType::kFp32},
                                                                   {"<f8", DataType::kFp64}}};
  for (const auto& [descr, type] : types) {
    const auto array = read_npy(typed(descr, "()", std::string(element_size(type), '\1')));
    ASSERT_TRUE(array.has_value()) << descr << ": " << array.error();
    EXPECT_EQ(array->type, type) << descr;
    EXPECT_TRUE(array->shape.empty());
  }
}

TEST(ReadNpy, TakesThePaddingOffStrings) {
  const auto bytes = read_npy(typed("|S3", "(2,)", "ab\0\0\0\0"s));
  ASSERT_TRUE(bytes.has_value()) << bytes.error();
  EXPECT_EQ(bytes->type, DataType::kBytes);
  EXPECT_EQ(as_chars(bytes->data), "\x02\0\0\0ab\0\0\0\0"s);
  // numpy.array(["é", "😀"])
  const auto text = read_npy(typed("<U2", "(2,)", "\xe9\0\0\0\0\0\0\0\x00\xf6\x01\0\0\0\0\0"s));
  ASSERT_TRUE(text.has_value()) << text.error();
  EXPECT_EQ(as_chars(text->data), "\x02\0\0\0é\x04\0\0\0😀"s);
}

TEST(ReadNpy, KnowsTheLaterVersions) {
  const std::string dict = "{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"|u1\"}\n";
  for (const char* version : {"\x02", "\x03"}) {
    std::string file = "\x93NUMPY"s + version + "\0"s;
    file += static_cast<char>(dict.size());
    file += "\0\0\0"s + dict + "ab";
    const auto array = read_npy(file);
    ASSERT_TRUE(array.has_value()) << array.error();
    EXPECT_EQ(as_chars(array->data), "ab");
  }
}

TEST(ReadNpy, SaysWhatItDoesNotRead) {
  const std::string fortran = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }";
  EXPECT_NE(error_of(numpy_file(fortran, std::string(32, '\0'))).find("Fortran order"),
            std::string::npos);
  EXPECT_NE(error_of(typed("|O", "(2,)", "\x80\x04")).find("Python objects"), std::string::npos);
  EXPECT_NE(error_of(typed(">f4", "()", "abcd")).find("big-endian"), std::string::npos);
  EXPECT_NE(error_of(typed("<c8", "()", "abcdefgh")).find("<c8"), std::string::npos);
  const std::string fields = "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }";
  EXPECT_NE(error_of(numpy_file(fields, "abcd")).find("structures"), std::string::npos);
  EXPECT_NE(error_of("PK\x03\x04").find("no .npy file"), std::string::npos);
}

TEST(ReadNpy, RefusesWhatIsDamaged) {
  for (size_t size = 0; size < kFloats.size(); ++size) {
    EXPECT_FALSE(read_npy(std::string_view(kFloats).substr(0, size)).has_value()) << size;
  }
  EXPECT_NE(error_of(kFloats + "x").find("13 bytes"), std::string::npos);
  const std::string whole = "'fortran_order': False, 'shape': (1,)";
  for (const std::string& dict :
       {"{" + whole + "}", "{'descr': '|u1', " + whole + "} x", "{'descr': '|u1', " + whole,
        "{'descr': '|u1', 'descr': '|u1', " + whole + "}", "{'descr': '|u1' " + whole + "}",
        "{'descr': '|u1', 'x': 1, " + whole + "}", "{'descr': '|u1, " + whole + "}"s,
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}"s,
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}"s,
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1 1)}"s,
        "{'descr': '|u1', 'fortran_order': False, 'shape': 1}"s}) {
    EXPECT_FALSE(error_of(numpy_file(dict, "x")).empty()) << dict;
  }
}

TEST(ReadNpy, RefusesShapesAndWidthsThatTheDataDoNotHave) {
  EXPECT_FALSE(error_of(typed("|u1", "(1099511627776, 1099511627776)", "")).empty());
  EXPECT_FALSE(error_of(typed("<f8", "(1099511627776,)", "")).empty());
  for (const char* descr : {"|S0", "<U0", "|S", "|S-1", "|Sx", "<U4294967295", "|S2x"}) {
    EXPECT_FALSE(error_of(typed(descr, "(0,)", "")).empty()) << descr;
  }
  EXPECT_FALSE(error_of(typed("|S2", "(2,)", "abc")).empty());
  EXPECT_FALSE(error_of(typed("<U1", "(1,)", "\x00\xd8\x00\x00"s)).empty());  // half a pair
}

TEST(WriteNpy, WritesWhatNumpyWrites) {
  const auto array = read_npy(kFloats);
  const auto file = write_npy({"x", array->type, array->shape, array->data});
  ASSERT_TRUE(file.has_value()) << file.error();
  EXPECT_EQ(*file, kFloats);
}

TEST(WriteNpy, WritesEveryShape) {
  const std::array<std::byte, 2> data{};
  for (const Shape& shape : {Shape{}, Shape{2}, Shape{0}, Shape{1, 2, 1}, Shape(64, 1)}) {
    const size_t count = *element_count(shape);
    const auto file = write_npy({"x", DataType::kInt8, shape, std::span(data).first(count)});
    ASSERT_TRUE(file.has_value()) << file.error();
    EXPECT_EQ((file->size() - count) % 64, 0U);
    const auto back = read_npy(*file);
    ASSERT_TRUE(back.has_value()) << back.error();
    EXPECT_EQ(back->shape, shape);
  }
}

TEST(WriteNpy, WritesBf16AsFloats) {
  const std::array<uint16_t, 2> halves = {0x3f80, 0xc000};  // 1, -2
  const auto file = write_npy({"x", DataType::kBf16, {2}, std::as_bytes(std::span(halves))});
  ASSERT_TRUE(file.has_value()) << file.error();
  EXPECT_TRUE(file->ends_with("\x00\x00\x80\x3f\x00\x00\x00\xc0"s));
  EXPECT_EQ(read_npy(*file)->type, DataType::kFp32);
}

TEST(WriteNpy, GivesStringsTheWidthOfTheLongest) {
  const std::string data = "\x02\0\0\0ab\0\0\0\0\x01\0\0\0c"s;
  const auto file = write_npy({"x", DataType::kBytes, {3}, std::as_bytes(std::span(data))});
  ASSERT_TRUE(file.has_value()) << file.error();
  EXPECT_TRUE(file->ends_with("\nab\0\0c\0"s));
  EXPECT_EQ(as_chars(read_npy(*file)->data), data);
}

TEST(WriteNpy, RefusesStringsThatNoWidthHolds) {
  const std::string ends_in_nul = "\x02\0\0\0a\0"s;
  EXPECT_FALSE(
      write_npy({"x", DataType::kBytes, {1}, std::as_bytes(std::span(ends_in_nul))}).has_value());
  std::string uneven("\x00\x00\x10\x00"s + std::string(1 << 20, 'x'));  // and 2,000 empty ones
  uneven.append(8000, '\0');
  EXPECT_FALSE(
      write_npy({"x", DataType::kBytes, {2001}, std::as_bytes(std::span(uneven))}).has_value());
}

}  // namespace
}  // namespace baton::protocol::npy
