import Glibc

/// Looking into messages without decoding them.
enum BenchText {
    /// The digits behind the first place where `key` stands.
    static func number(after key: StaticString, _ message: UnsafeRawBufferPointer) -> Int? {
        let count = key.utf8CodeUnitCount
        guard message.count > count else { return nil }
        let found = (0..<message.count - count).first { offset in
            message[offset] == key.utf8Start[0] && memcmp(message.baseAddress! + offset, key.utf8Start, count) == 0
        }
        guard var at = found.map({ $0 + count }) else { return nil }
        var value = 0
        while at < message.count, message[at] &- 0x30 < 10 {
            value = value * 10 + Int(message[at] - 0x30)
            at += 1
        }
        return value
    }
}
