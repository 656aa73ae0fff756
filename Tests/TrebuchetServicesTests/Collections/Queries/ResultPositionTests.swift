import Testing

@testable import TrebuchetServices

@Suite struct ResultPositionTests {
    private enum Step { case shows(Int), told(Int, Int), begin }

    @Test("a result counts up to its revision, and further as reported by the server once that result has arrived")
    func positions() {
        let table: [([Step], Int?)] = [
            ([], nil), ([.told(3, 5)], nil), ([.shows(3)], 3), ([.shows(3), .told(3, 5)], 5),
            ([.told(3, 5), .shows(3)], 5),
            // The server reports on a result that has not arrived.
            ([.shows(2), .told(3, 5)], 2), ([.shows(2), .told(3, 5), .shows(3)], 5),
            ([.shows(2), .told(3, 5), .shows(4)], 5),
            ([.shows(2), .told(3, 5), .told(6, 7), .shows(3)], 3),
            ([.shows(2), .told(3, 5), .told(6, 7), .shows(6)], 7),
            ([.shows(2), .told(6, 7), .told(3, 5), .shows(6)], 7),
            ([.shows(2), .told(6, 7), .told(6, 9), .shows(6)], 9),
            ([.shows(2), .told(6, 9), .told(6, 7), .shows(6)], 9), ([.shows(3), .told(3, 5), .told(3, 4)], 5),
            ([.shows(3), .told(3, 5), .shows(9)], 9),
            // A restarted server.
            ([.shows(50), .told(50, 60), .begin, .shows(2)], 2), ([.shows(50), .told(51, 60), .begin, .shows(70)], 70),
        ]
        for (steps, seen) in table {
            var position = ResultPosition()
            for step in steps {
                switch step {
                case .shows(let revision): position.receive(revision)
                case .told(let shown, let through): position.confirm(received: shown, through: through)
                case .begin: position.reset()
                }
            }
            #expect(position.seen == seen, "\(steps)")
        }
    }
}
