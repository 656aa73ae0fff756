/// Checks the values of a counter's reader: each number once, in order. Pure.
struct CounterCheck {
    private var steps: StepsBack
    private var last: Int?
    /// Whether the stream has just restarted.
    private var isAfterOverflow = false

    init(_ strictness: Strictness) { steps = strictness.stepsBack }

    mutating func overflowed() { isAfterOverflow = true }

    mutating func take(_ count: Int) -> String? {
        defer { (last, isAfterOverflow) = (count, false) }
        guard let last, count != last + 1, count != last + Counter.end else { return nil }
        if isAfterOverflow, count >= last { return nil }
        return steps.use() ? nil : "\(count) came after \(last)"
    }

    /// Returns the error in the last number of a reader; nil if it equals that of its counter.
    ///
    /// - Parameters:
    ///   - state: the index of the counter, and a suffix.
    ///   - counts: the final number of each counter.
    static func finding(inEnd digest: String, of state: String, by reader: String, _ counts: [Int]) -> String? {
        guard let number = state.split(separator: " ").first.flatMap({ Int($0) }), counts.indices.contains(number)
        else {
            return "\(reader): there is no counter '\(state)'"
        }
        // The final addition may be applied twice if its outcome was unknown.
        if let count = Int(digest), count % Counter.end == counts[number] % Counter.end { return nil }
        return "\(reader): the number in the end, \(digest), is not the server's: \(counts[number])"
    }

    var description: String { "\(last ?? 0)" }
}
