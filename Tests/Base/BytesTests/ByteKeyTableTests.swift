import Testing

@testable import Bytes

@Suite struct ByteKeyTableTests {
    @Test("a byte key table behaves like a dictionary, including removal")
    func tableAgainstDictionary() {
        var table = ByteKeyTable<Int>()
        var model: [String: Int] = [:]
        var seed: UInt64 = 7
        for step in 0..<4_000 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1
            let key = "k\((seed >> 33) % 97)"
            let value = (seed >> 60) < 6 ? nil : step
            table[key] = value
            model[key] = value
            #expect(table.count == model.count)
            #expect(table[key] == value)
        }
        for key in model.keys { #expect(table[key] == model[key]) }
        #expect(table[""] == nil)
        table[""] = 5
        #expect(table[""] == 5)
    }

    @Test("keys of every length are distinguished, whatever bytes surround them")
    func keysOfEveryLength() {
        var table = ByteKeyTable<Int>()
        let keys = (0...100).flatMap { count in ["a", "b"].map { String(repeating: $0, count: count) + "a" } }
        for (index, key) in keys.enumerated() { table[key] = index }
        for key in Set(keys) { #expect(table[key] == keys.lastIndex(of: key)) }
        #expect(table.count == Set(keys).count)
    }

    /// Names with equal hashes under an unkeyed hash, as a peer could construct them: any first word, and a second one that leads to one
    /// common hash.
    private static func collidingKeys(_ count: Int) -> [[UInt64]] {
        (1...UInt64(count)).map { number in
            var hash = (0xcbf2_9ce4_8422_2325 ^ number) &* 0x100_0000_01b3
            hash ^= hash >> 29
            return [number, hash ^ 0x5eed]
        }
    }

    @Test("names with colliding unkeyed hashes are distributed in the table")
    func chosenNames() {
        var table = ByteKeyTable<Int>()
        let keys = Self.collidingKeys(4_000)
        for (index, key) in keys.enumerated() { key.withUnsafeBytes { table.set($0, index) } }
        #expect(table.count == keys.count)
        var steps = 0
        var longest = 0
        for (index, key) in keys.enumerated() {
            key.withUnsafeBytes { bytes in
                #expect(table[bytes] == index)
                let hash = table.hash(bytes)
                let mask = table.slots.count - 1
                let distance = (table.slotIndex(of: bytes, hash) - Int(truncatingIfNeeded: hash)) & mask
                steps += distance
                longest = max(longest, distance)
            }
        }
        // At most half of the slots are used: less than one step on average is expected, and 200 in a row never seen.
        #expect(steps < 2 * keys.count)
        #expect(longest < 200)
    }

    @Test("keys that differ in one bit have hashes that differ in half of their bits")
    func oneBit() {
        let table = ByteKeyTable<Int>()
        for count in [1, 3, 4, 7, 8, 15, 16, 17, 24, 33] {
            let key = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            let hash = key.withUnsafeBytes { table.hash($0) }
            var different = 0
            for bit in 0..<count * 8 {
                var other = key
                other[bit / 8] ^= 1 << (bit % 8)
                different += (hash ^ other.withUnsafeBytes { table.hash($0) }).nonzeroBitCount
            }
            let average = Double(different) / Double(count * 8)
            #expect((20...44).contains(average), "\(count) bytes: \(average) bits")
        }
    }
}
