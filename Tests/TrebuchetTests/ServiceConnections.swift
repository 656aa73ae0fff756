import TestSupport
import Trebuchet

/// The methods of a client's actor that its server calls.
@Trebuchet
distributed actor InProcessClientActor {
    let name: String
    private let journal: Journal
    private var friends: [InProcessClientActor] = []
    @StreamedState var heard: [String] = []

    init(_ name: String, journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func hear(_ text: String) -> Int {
        heard.append(text)
        journal.record(text)
        return heard.count
    }
    distributed func hearLater(_ text: String) async -> Int {
        await Task.yield()
        return hear(text)
    }
    distributed func refuse() throws(BankError) { throw .insufficient(missing: 7) }
    distributed func explode() throws { throw Secret() }
    distributed func large(_ count: Int) -> String { String(repeating: "x", count: count) }
    /// Waits until it is cancelled.
    distributed func wait() async throws {
        journal.record("waits")
        await journal.wait(for: "nothing")
        journal.record("cancelled")
        try Task.checkCancellation()
    }
    distributed func callerIsServer() -> Bool { Caller.current?.isServer ?? false }
    distributed func friend() -> InProcessClientActor {
        let friend = InProcessClientActor("friend", journal: journal, actorSystem: actorSystem)
        friends.append(friend)
        return friend
    }
    @Idempotent distributed func once() -> Int { 1 }
}

/// A server actor that retains references to client actors, and calls them.
@Trebuchet
distributed actor InProcessReferenceHolder {
    private var visitors: [InProcessClientActor] = []

    distributed func enter(_ visitor: InProcessClientActor) -> String {
        visitors.append(visitor)
        return "\(visitor.id)"
    }
    distributed func enterAll(_ visitors: [InProcessClientActor]) { self.visitors += visitors }
    distributed func leaveAll() { visitors = [] }
    distributed func areSame() -> Bool { visitors.allSatisfy { $0 == visitors[0] } }
    distributed func first() -> InProcessClientActor? { visitors.first }
    distributed func tell(_ text: String) async throws -> [Int] {
        var counts: [Int] = []
        for visitor in visitors { counts.append(try await visitor.hear(text)) }
        return counts
    }
    distributed func tellLater(_ text: String) async throws -> [Int] {
        var counts: [Int] = []
        for visitor in visitors { counts.append(try await visitor.hearLater(text)) }
        return counts
    }
    /// Returns the code and the text of the call's outcome.
    distributed func outcome(of call: String, milliseconds: Int = 60_000) async -> [String] {
        guard let visitor = visitors.last else { return ["nobody"] }
        do {
            return try await withDeadline(.milliseconds(milliseconds)) {
                switch call {
                case "hear": return ["\(try await visitor.hear("x"))"]
                case "refuse": try await visitor.refuse()
                case "explode": try await visitor.explode()
                case "wait": try await visitor.wait()
                case "once": return ["\(try await visitor.once())"]
                case "isServer": return ["\(try await visitor.callerIsServer())"]
                case "friend": return ["\(try await visitor.friend().hear("friend"))"]
                case "observe":
                    for try await heard in visitor.observeHeard.throwing() { return heard }
                default: return ["\(try await visitor.large(Int(call) ?? 0).count)"]
                }
                return []
            }
        } catch let error as TrebuchetError {
            return ["\(error.code)", error.message]
        } catch {
            return ["\(type(of: error))", "\(error)"]
        }
    }
}
