import Testing

@testable import TrebuchetWire

struct KeyedHasherTests {
    private func digest(_ text: String) -> Int? { Array(text.utf8).withUnsafeBytes { JSONText.digest($0) } }

    @Test(
        "texts of one value have one digest",
        arguments: [
            (#"{"a":1,"b":[true,null]}"#, #"{ "b" : [true, null], "a" : 1.0 }"#),
            (#"{"a":{"x":"é","y":-0.50}}"#, #"{"a":{"y":-5e-1,"x":"\u00e9"}}"#),
            ("[100,12345678901234567890]", "[1e2,1.2345678901234567890e19]"), (#""""#, #" "" "#),
        ])
    func equal(one: String, other: String) {
        #expect(digest(one) != nil && digest(one) == digest(other))
    }

    @Test("different values have different digests")
    func different() {
        let long = String(repeating: "0123456789abcdef", count: 4)
        let texts = [
            "null", "true", "false", "0", "1", "-1", "10", "1.5", #""""#, #""0""#, #""null""#, "[]", "{}", "[[]]",
            "[{}]", "[0]",
            "[0,0]", #"{"a":0}"#, #"{"a":1}"#, #"{"b":0}"#, #"{"a":0,"b":1}"#, #"{"a":1,"b":0}"#, #"{"a":{"b":0}}"#,
            #"["a",0]"#, #"["a0"]"#, #""\#(long)""#, #""\#(long)0""#, #""1\#(long)""#, #""\u0000""#, #""\u0000\u0000""#,
        ]
        #expect(Set(texts.compactMap(digest)).count == texts.count)
    }

    @Test("a change of one byte or of the number of bytes changes the hash")
    func bytes() {
        var hashes: Set<Int> = []
        var count = 0
        func add(_ bytes: [UInt8]) {
            var hasher = KeyedHasher()
            bytes.withUnsafeBytes { hasher.combine($0) }
            hashes.insert(hasher.finalize())
            count += 1
        }
        for length in 0...70 {
            let zeros = [UInt8](repeating: 0, count: length)
            add(zeros)
            for index in zeros.indices {
                var changed = zeros
                changed[index] = 1
                add(changed)
            }
        }
        #expect(hashes.count == count)
    }

    @Test("invalid JSON has no digest", arguments: ["", "{", "[1", #"{"a"}"#, "1 2"])
    func invalid(text: String) { #expect(digest(text) == nil) }
}
