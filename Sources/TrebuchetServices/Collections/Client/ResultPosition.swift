/// Up to which write a result shows what the server has. Pure.
///
/// A result has the number of the last write that changed it, and the server does not send it where later ones change nothing. It says
/// so with its tickets and with the answers of writes: "your result, once it is at this write, shows all up to that one".
struct ResultPosition: Sendable, Equatable {
    /// Of the result that has come.
    private var shown: Int?
    /// What was said of results that have come.
    private var sure: Int?
    /// What was said last of one that has not.
    private var expected: (shown: Int, through: Int)?

    /// Nil before there is a result.
    var seen: Int? { shown.map { max($0, sure ?? $0) } }

    /// What comes now is another view's: perhaps of a server that has begun anew.
    mutating func begin() { (sure, expected) = (nil, nil) }

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
