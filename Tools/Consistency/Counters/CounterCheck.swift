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
        return steps.take() ? nil : "\(count) came after \(last)"
    }

    var description: String { "\(last ?? 0)" }
}
