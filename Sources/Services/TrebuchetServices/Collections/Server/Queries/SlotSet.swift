/// A set of slots, as bits. Pure.
struct SlotSet {
    private var words: [UInt64] = []

    mutating func insert(_ slot: Int) {
        let word = slot / UInt64.bitWidth
        if word >= words.count { words += repeatElement(0, count: word + 1 - words.count) }
        words[word] |= 1 << UInt64(slot % UInt64.bitWidth)
    }

    /// Removes a slot; returns whether it was in the set.
    mutating func remove(_ slot: Int) -> Bool {
        let (word, bit) = (slot / UInt64.bitWidth, UInt64(1) << UInt64(slot % UInt64.bitWidth))
        guard word < words.count, words[word] & bit != 0 else { return false }
        words[word] &= ~bit
        return true
    }
}
