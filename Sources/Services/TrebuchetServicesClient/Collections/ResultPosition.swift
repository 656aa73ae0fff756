/// The newest write up to which a result is complete. Pure.
///
/// A result has the number of the last write that changed it; later writes without effect on it do not update it. So tickets
/// and responses to writes say: "your result, once it is at this write, is complete up to that one".
struct ResultPosition: Sendable, Equatable {
    /// The number in the received result.
    private var receivedRevision: Int?
    /// The confirmed position of a received result.
    private var confirmed: Int?
    /// The newest announced position of a result that has not been received.
    private var expected: (shown: Int, through: Int)?

    /// Nil without a result.
    var seen: Int? { receivedRevision.map { max($0, confirmed ?? $0) } }

    /// Starts another view, perhaps of a restarted server.
    mutating func reset() { (confirmed, expected) = (nil, nil) }

    mutating func receive(_ revision: Int) {
        receivedRevision = revision
        guard let expected, expected.shown <= revision else { return }
        confirmed = max(confirmed ?? 0, expected.through)
        self.expected = nil
    }

    mutating func confirm(received revision: Int, through: Int) {
        if let receivedRevision, revision <= receivedRevision {
            confirmed = max(confirmed ?? 0, through)
        } else if expected.map({ $0.shown <= revision }) ?? true {
            expected = (revision, max(through, expected?.shown == revision ? expected?.through ?? 0 : 0))
        }
    }

    static func == (one: Self, other: Self) -> Bool {
        one.receivedRevision == other.receivedRevision && one.confirmed == other.confirmed
            && one.expected?.shown == other.expected?.shown
            && one.expected?.through == other.expected?.through
    }
}
