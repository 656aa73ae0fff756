/// What a reader of a counter may see: each number, in order, once. Pure.
struct CounterCheck {
    private var steps: StepsBack
    private var last: Int?
    /// Whether the stream has just begun, after it had ended.
    private var isAfterOverflow = false

    init(_ strictness: Strictness) { steps = strictness.stepsBack }

    mutating func overflowed() { isAfterOverflow = true }

    mutating func take(_ count: Int) -> String? {
        defer { (last, isAfterOverflow) = (count, false) }
        guard let last, count != last + 1, count != last + Counter.end else { return nil }
        if isAfterOverflow, count >= last { return nil }
        return steps.use() ? nil : "\(count) came after \(last)"
    }

    /// What is wrong with the last number of a reader; nil if it is that of its counter.
    ///
    /// - Parameters:
    ///   - state: the number of the counter, and what follows it.
    ///   - counts: the number of each counter in the end.
    static func finding(inEnd digest: String, of state: String, by reader: String, _ counts: [Int]) -> String? {
        guard let number = state.split(separator: " ").first.flatMap({ Int($0) }), counts.indices.contains(number)
        else {
            return "\(reader): there is no counter '\(state)'"
        }
        // An end of which nobody knows whether it was made comes twice, or not.
        if let count = Int(digest), count % Counter.end == counts[number] % Counter.end { return nil }
        return "\(reader): the number in the end, \(digest), is not the server's: \(counts[number])"
    }

    var description: String { "\(last ?? 0)" }
}
