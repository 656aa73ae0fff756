import TestSupport
import Trebuchet

/// A client's actor that its server calls.
@Trebuchet
distributed actor CalledClientActor {
    private let journal: Journal

    init(journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func receive(_ text: String) -> Int {
        journal.record(text)
        return journal.entries.count
    }
    distributed func answer(_ count: Int) -> String { String(repeating: "x", count: count) }
    distributed func wait() async throws {
        journal.record("waits")
        await journal.wait(for: "nothing")
        try Task.checkCancellation()
    }
}

/// Retains references to client actors, and calls them.
@Trebuchet
distributed actor ClientReferenceHolder {
    private var clientActors: [CalledClientActor] = []
    private let journal: Journal

    init(journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func count() -> Int { clientActors.count }

    distributed func enter(_ clientActor: CalledClientActor) { clientActors.append(clientActor) }
    distributed func enterAll(_ clientActors: [CalledClientActor]) { self.clientActors += clientActors }
    distributed func leaveAll() { clientActors = [] }
    /// The outcome of a call of the last client actor: its result, or the code and text of its error.
    distributed func tell(_ text: String, milliseconds: Int = 60_000) async -> [String] {
        await outcome(milliseconds) { ["\(try await $0.receive(text))"] }
    }
    distributed func ask(_ count: Int) async -> [String] {
        await outcome(60_000) { ["\(try await $0.answer(count).utf8.count)"] }
    }
    /// The outcome of a call that does not end by itself.
    distributed func askToWait(_ milliseconds: Int = 60_000) async -> [String] {
        await outcome(milliseconds) {
            try await $0.wait()
            return []
        }
    }

    private func outcome(_ milliseconds: Int, _ call: (CalledClientActor) async throws -> [String]) async -> [String] {
        guard let clientActor = clientActors.last else { return ["nobody"] }
        journal.record("calls")
        do {
            return try await withDeadline(.milliseconds(milliseconds)) { try await call(clientActor) }
        } catch let error as TrebuchetError {
            return ["\(error.code)", error.message]
        } catch {
            return ["\(type(of: error))"]
        }
    }
}
