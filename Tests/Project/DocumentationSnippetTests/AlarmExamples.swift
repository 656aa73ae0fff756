import Foundation
import Trebuchet

/// The code of the guides to alarms and to the activation of actors.
enum AlarmExamples {
    struct Board: Codable, Sendable { var fields: [Int] = [] }

    @Trebuchet
    distributed actor Match {
        @StreamedState(persisted: true) var board = Board()

        func activate() async throws {
        }
    }

    @Trebuchet
    distributed actor Auction {
        struct Lot: Codable, Sendable { var title: String }

        @StreamedState(persisted: true) var isOpen: Bool = false

        distributed func open(title: String, until end: Date) throws {
            isOpen = true
            try alarms.set("close", at: end, payload: Lot(title: title))
        }

        distributed func withdraw() throws {
            isOpen = false
            try alarms.cancel("close")
        }

        func alarm(_ alarm: Alarm) {
            guard alarm.name == "close" else { return }
            isOpen = false
        }
    }

    @Trebuchet
    distributed actor Ticker {
        distributed func tick(from start: Date, until end: Date) async throws {
            try await alarms.set("tick", at: start, every: .seconds(60))
            try await alarms.set("close", at: end)
        }

        func alarm(_ alarm: Alarm) async throws {}
    }
}
