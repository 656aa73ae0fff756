import TestSupport
import Trebuchet

/// Accepts and returns data of a requested size.
@Trebuchet
distributed actor PayloadEchoActor {
    struct EchoState: Codable, Sendable, Equatable {
        var count = 0
        var padding = ""
    }

    @StreamedState var pile: EchoState = EchoState()
    @StreamedState(delivery: .every(buffer: 8)) var pages: String = ""
    @StreamedState var small: Int = 0
    @StreamedState var shelf: [String] = []
    @StreamedEvents(buffer: 8) var parcels: String
    private let journal: Journal

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func take(_ text: String) -> Int {
        journal.record("take")
        return text.utf8.count
    }
    @Idempotent
    distributed func takeOnce(_ text: String) -> Int { take(text) }

    /// A string of `count` letters.
    distributed func give(_ count: Int) -> String { String(repeating: "x", count: count) }
    distributed func giveLater(_ count: Int) async -> String { give(count) }
    @Idempotent
    distributed func giveOnce(_ count: Int) -> String {
        journal.record("give")
        return give(count)
    }
    distributed func fail(_ count: Int) throws { throw PayloadError(load: give(count)) }

    distributed func pile(_ count: Int) {
        small += 1
        pile = EchoState(count: pile.count + 1, padding: give(count))
    }
    distributed func shelve(_ count: Int) { shelf.append(give(count)) }
    distributed func write(_ count: Int) { pages = give(count) }
    distributed func send(_ count: Int) { $parcels.send(give(count)) }

    @Idempotent
    distributed func hold(_ name: String) async -> Int {
        journal.record("\(name) began")
        await journal.wait(for: "\(name) go")
        return 1
    }
}

struct PayloadError: Error, Codable, Equatable { var load: String }
