import Synchronization
import TestSupport
import Trebuchet

/// An actor for the events of these tests.
@Trebuchet
distributed actor Shelf {
    struct Refused: Error, Codable {}

    @StreamedState var books: [String] = []
    private let journal: Journal

    init(journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func put(_ book: String) -> Int {
        books.append(book)
        return books.count
    }

    distributed func putLater(_ book: String) async -> Int {
        await Task.yield()
        books.append(book)
        return books.count
    }

    distributed func refuse(_ secret: String) throws { throw Refused() }

    distributed func wait(_ name: String) async {
        journal.record("\(name) waits")
        await journal.wait(for: "\(name) goes")
    }

    distributed func signIn(as name: String?) {
        Caller.current?.connection.principal = name.map { Principal(id: $0) }
    }
}

/// Records the received events.
final class RecordingEventHandler: ServerEventHandler {
    let kinds: ServerEvent.Kinds
    private let received = Mutex<[ServerEvent]>([])

    init(_ kinds: ServerEvent.Kinds) { self.kinds = kinds }

    func handle(_ event: ServerEvent) {
        // A busy machine adds such events at any time.
        if case .reactorStalled = event { return }
        received.withLock { $0.append(event) }
    }

    var events: [ServerEvent] { received.withLock { $0 } }

    var calls: [ServerEvent.Call] {
        events.compactMap { if case .callEnded(let call, _, _) = $0 { call } else { nil } }
    }
    var versions: [ServerEvent.Version] {
        events.compactMap { if case .versionCreated(let version) = $0 { version } else { nil } }
    }
}
