import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@Suite struct ResultPositionTests {
    private enum Step { case received(Int), confirmed(Int, Int), begin }

    @Test("a result counts up to its revision, and further as reported by the server once that result has arrived")
    func positions() {
        let table: [([Step], Int?)] = [
            ([], nil), ([.confirmed(3, 5)], nil), ([.received(3)], 3), ([.received(3), .confirmed(3, 5)], 5),
            ([.confirmed(3, 5), .received(3)], 5),
            // The server reports on a result that has not arrived.
            ([.received(2), .confirmed(3, 5)], 2), ([.received(2), .confirmed(3, 5), .received(3)], 5),
            ([.received(2), .confirmed(3, 5), .received(4)], 5),
            ([.received(2), .confirmed(3, 5), .confirmed(6, 7), .received(3)], 3),
            ([.received(2), .confirmed(3, 5), .confirmed(6, 7), .received(6)], 7),
            ([.received(2), .confirmed(6, 7), .confirmed(3, 5), .received(6)], 7),
            ([.received(2), .confirmed(6, 7), .confirmed(6, 9), .received(6)], 9),
            ([.received(2), .confirmed(6, 9), .confirmed(6, 7), .received(6)], 9),
            ([.received(3), .confirmed(3, 5), .confirmed(3, 4)], 5),
            ([.received(3), .confirmed(3, 5), .received(9)], 9),
            // A restarted server.
            ([.received(50), .confirmed(50, 60), .begin, .received(2)], 2),
            ([.received(50), .confirmed(51, 60), .begin, .received(70)], 70),
        ]
        for (steps, seen) in table {
            var position = ResultPosition()
            for step in steps {
                switch step {
                case .received(let revision): position.receive(revision)
                case .confirmed(let shown, let through): position.confirm(received: shown, through: through)
                case .begin: position.reset()
                }
            }
            #expect(position.seen == seen, "\(steps)")
        }
    }
}
