/// The newest write up to which a result is complete. Pure.
///
/// A result has the number of the last write that changed it; later writes without effect on it do not update it. So tickets
/// and responses to writes say: "your result, once it is at this write, is complete up to that one".
struct ResultPosition: Sendable, Equatable {
    /// The number in the received result.
    private var shown: Int?
    /// The confirmed position of a received result.
    private var sure: Int?
    /// The newest announced position of a result that has not been received.
    private var expected: (shown: Int, through: Int)?

    /// Nil without a result.
    var seen: Int? { shown.map { max($0, sure ?? $0) } }

    /// Starts another view, perhaps of a restarted server.
    mutating func reset() { (sure, expected) = (nil, nil) }

    mutating func shows(_ revision: Int) {
        shown = revision
        guard let expected, expected.shown <= revision else { return }
        sure = max(sure ?? 0, expected.through)
        self.expected = nil
    }

    mutating func isTold(shown revision: Int, through: Int) {
        if let shown, revision <= shown {
            sure = max(sure ?? 0, through)
        } else if expected.map({ $0.shown <= revision }) ?? true {
            expected = (revision, max(through, expected?.shown == revision ? expected?.through ?? 0 : 0))
        }
    }

    static func == (one: Self, other: Self) -> Bool {
        one.shown == other.shown && one.sure == other.sure && one.expected?.shown == other.expected?.shown
            && one.expected?.through == other.expected?.through
    }
}
