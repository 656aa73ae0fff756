import Testing
import TrebuchetWire

@Suite("Comparing JSON texts")
struct JSONTextTests {
    @Test(
        "texts of one value are equal",
        arguments: [
            ("1", " 1.0 "), ("0", "-0"), ("0e9", "0.00"), ("100", "1e+2"), ("-1.50", "-15e-1"),
            ("\"\\n\"", "\"\\u000a\""),
            ("[]", "[ ]"), ("{}", "{\n}"), (#"{"a":1,"b":[2]}"#, #"{"b":[2.0],"a":1}"#),
            (#"{"a":1,"b":2,"c":3}"#, #"{"a":1,"c":3,"b":2}"#),
            ("1e999999999999999999999", "1e999999999999999999999"),
        ])
    func equal(_ one: String, _ other: String) {
        #expect(JSONText.isEqual(one, other))
        #expect(JSONText.isEqual(other, one))
    }

    @Test(
        "texts of two values are not",
        arguments: [
            ("1", "2"), ("1", "10"), ("1", "-1"), ("1", "0.1"), ("12", "1.2"),
            ("1e999999999999999999999", "1e999999999999999999998"),
            ("true", "false"), ("null", "0"), ("\"1\"", "1"), ("[1]", "[1,1]"), ("[]", "{}"), ("[[]]", "[{}]"),
            (#"{"a":1}"#, #"{"a":2}"#), (#"{"a":1}"#, #"{"b":1}"#), (#"{"a":1}"#, "{}"),
            (#"{"a":1,"b":2}"#, #"{"b":1,"a":2}"#), (#"{"a":1,"a":1}"#, #"{"a":1}"#), ("1", "1 2"), ("", ""),
            ("[", "["),
        ])
    func unequal(_ one: String, _ other: String) {
        #expect(!JSONText.isEqual(one, other))
        #expect(!JSONText.isEqual(other, one))
    }
}
