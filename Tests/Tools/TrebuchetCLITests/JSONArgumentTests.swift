import Testing

@testable import TrebuchetCLI

@Suite struct JSONArgumentTests {
    @Test(
        "JSON is printed with the members of objects sorted by name",
        arguments: [
            (
                #"{"c":1, "a":[{"z":null,"y":true}], "b":{"f":0.5,"e":"\"\n"}}"#,
                #"{"a":[{"y":true,"z":null}],"b":{"e":"\"\n","f":0.5},"c":1}"#
            ),
            ("{}", "{}"), ("[]", "[]"), (#"[ "a", -1 ]"#, #"["a",-1]"#),
        ])
    func members(text: String, printed: String) throws {
        #expect(try JSONArgument.text(JSONArgument.value(text)) == printed)
    }
}
