import Bytes
import Testing

@Test("a byte key table does what a dictionary does, removal too")
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
