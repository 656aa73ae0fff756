/// How often a reader may still see that writes are gone.
struct StepsBack: Equatable {
    static let none = StepsBack(left: 0)
    /// An engine may lose its newest writes at any time.
    static let any = StepsBack(left: .max)
    /// One restore, and no other loss.
    static let one = StepsBack(left: 1)

    private(set) var left: Int

    /// Uses one permitted step back. Returns false if none was left.
    mutating func use() -> Bool {
        guard left > 0 else { return false }
        if left < .max { left -= 1 }
        return true
    }
}
