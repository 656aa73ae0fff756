internal import Bytes
internal import Trebuchet
internal import TrebuchetActors

/// The query for recent calls: `?after=17&limit=100&connection=3&actor=todos&failed=1`.
struct CallListQuery {
    /// A position in the ring; only later entries are shown.
    let after: UInt64
    let limit: Int
    private let connection: UInt64?
    private let actor: ActorName?
    private let failedOnly: Bool

    init(_ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        after = UInt64(try query.number("after", in: 0...Int.max) ?? 0)
        limit = try query.number("limit", in: 1...RecentCallBuffer.capacity) ?? 100
        connection = try query.number("connection", in: 0...Int.max).map { UInt64($0) }
        actor = query.text("actor").map { ActorName($0) }
        failedOnly = try query.number("failed", in: 0...1) == 1
    }

    func matches(_ outcome: RecentCallBuffer.Outcome) -> Bool {
        (!failedOnly || outcome.isFailed) && (connection == nil || connection == outcome.connection)
            && (actor == nil || actor == outcome.actor.map { ActorName($0) })
    }
}

/// The most recent calls by number, and a ring of ended calls in their order, interleaved with other events.
struct RecentCallBuffer {
    static let capacity = 2_000
    /// The maximum size of a rejection reason in bytes.
    private static let maximumReasonLength = 512
    /// The number of calls that can be looked up by number, a power of two.
    private static let known = 4_096
    /// The maximum number of other actors of a call, and the maximum size of their names in bytes.
    private static let (maximumOthers, maximumNameLength) = (8, 128)
    /// The maximum number of entries, from other reactors, between the end of a call and the event with its error.
    private static let maximumInterval = 64

    /// The known data of a call. An immutable object, so that the ring can be copied quickly while calls continue.
    final class Entry: Sendable {
        let number: UInt64
        let call: ServerEvent.Call?
        let began: Int64
        let duration: Duration?
        let error: TrebuchetError.Code?
        let details: Details

        /// Data that few calls have.
        struct Details: Sendable {
            /// Actors that the method has resolved or called.
            var others: [String] = []
            var failure: ServerEvent.Failure?
        }

        init(
            _ number: UInt64, _ call: ServerEvent.Call? = nil, began: Int64 = 0, duration: Duration? = nil,
            error: TrebuchetError.Code? = nil, details: Details = Details()
        ) {
            (self.number, self.call, self.began, self.duration, self.error) = (number, call, began, duration, error)
            self.details = details
        }

        func with(_ details: Details) -> Entry {
            Entry(number, call, began: began, duration: duration, error: error, details: details)
        }
    }

    /// A call that was rejected before it started.
    struct RejectedCall: Sendable {
        let peer: ServerEvent.Peer
        let actor: String
        let target: String
        let error: TrebuchetError.Code
        let reason: String
        let time: Int64
    }

    /// An entry of the ring. JSON is generated for a query, not for each call.
    indirect enum Outcome: Sendable {
        case ended(Entry)
        case refused(RejectedCall)
        /// Another event.
        case event(ServerEvent, at: Int64)

        var actor: String? {
            switch self {
            case .ended(let entry): entry.call?.actor
            case .refused(let refused): refused.actor
            case .event: nil
            }
        }

        var connection: UInt64? {
            switch self {
            case .ended(let entry): entry.call?.peer.connection
            case .refused(let refused): refused.peer.connection
            case .event: nil
            }
        }

        var isCall: Bool { if case .event = self { false } else { true } }

        var isFailed: Bool {
            switch self {
            case .ended(let entry): entry.error != nil
            case .refused: true
            case .event: false
            }
        }

        var members: [(String, InspectorJSON)] {
            switch self {
            case .ended(let entry): entry.members
            case .refused(let refused):
                Entry.json(refused.peer) + [
                    ("actor", .text(refused.actor)), ("method", .text(refused.target)),
                    ("time", .integer(refused.time)), ("error", .text("\(refused.error)")),
                    ("refused", .text(refused.reason)),
                ]
            case .event: []
            }
        }
    }

    /// A numbered entry of the ring.
    struct Ended: Sendable {
        let number: UInt64
        let outcome: Outcome
    }

    private var entries: [Entry?] = []
    private var ended: [Ended] = []
    private var first = 0
    private(set) var lastNumber: UInt64 = 0
    /// The number of calls among the entries so far.
    private var callCount: UInt64 = 0
    /// The number of rejected calls among them.
    private var refused: UInt64 = 0

    /// Returns the data of a call; its number only if the call was overwritten.
    subscript(number: UInt64) -> Entry {
        guard !entries.isEmpty, let found = entries[Self.index(of: number)], found.number == number else {
            return Entry(number)
        }
        return found
    }

    private static func index(of number: UInt64) -> Int { Int(number & UInt64(known - 1)) }

    mutating func recordStart(_ call: ServerEvent.Call) {
        if entries.isEmpty { entries = Array(repeating: nil, count: Self.known) }
        entries[Self.index(of: call.number)] = Entry(call.number, call, began: WallTime.milliseconds)
    }

    mutating func recordEnd(_ call: ServerEvent.Call, _ duration: Duration, _ error: TrebuchetError.Code?) {
        // If the entry was overwritten meanwhile, compute the start from the end and the duration.
        let known = self[call.number]
        let began = known.began > 0 ? known.began : WallTime.milliseconds - Int64(duration / .milliseconds(1))
        let entry = Entry(call.number, call, began: began, duration: duration, error: error, details: known.details)
        if !entries.isEmpty, entries[Self.index(of: call.number)]?.number == call.number {
            entries[Self.index(of: call.number)] = entry
        }
        append(.ended(entry))
    }

    /// Records that the method of a call has resolved or called an actor.
    mutating func recordActor(_ number: UInt64, _ actor: String) {
        let entry = self[number]
        let name = actor.prefix(bytes: Self.maximumNameLength)
        var details = entry.details
        guard let call = entry.call, actor != call.actor, details.others.count < Self.maximumOthers,
            !details.others.contains(name)
        else { return }
        details.others.append(name)
        entries[Self.index(of: number)] = entry.with(details)
    }

    /// Records the error of a call that has just ended or is about to end.
    mutating func fail(_ failure: ServerEvent.Failure) {
        let entry = self[failure.call]
        guard entry.call != nil else { return }
        var details = entry.details
        details.failure = failure
        let failed = entry.with(details)
        entries[Self.index(of: failure.call)] = failed
        for age in 1...Self.maximumInterval where age <= ended.count {
            let index = (first + ended.count - age) % ended.count
            guard case .ended(let found) = ended[index].outcome, found === entry else { continue }
            ended[index] = Ended(number: ended[index].number, outcome: .ended(failed))
            return
        }
    }

    mutating func refuse(
        _ peer: ServerEvent.Peer, _ actor: String, _ target: String, _ error: TrebuchetError.Code, _ reason: String
    ) {
        append(
            .refused(
                RejectedCall(
                    peer: peer, actor: actor, target: target, error: error,
                    reason: reason.prefix(bytes: Self.maximumReasonLength),
                    time: WallTime.milliseconds)))
    }

    mutating func recordEvent(_ event: ServerEvent) {
        // Limit the size of an entry in bytes: at most one log line.
        let shortened: ServerEvent =
            switch event {
            case .logMessage(let level, let text): .logMessage(level, text.prefix(bytes: LogLine.longest))
            case .connectionRejected(let address, let status, let reason):
                .connectionRejected(
                    address: address, status: status, reason: reason.prefix(bytes: Self.maximumReasonLength))
            case .storeWriteCompleted(let actors, let duration, let error):
                .storeWriteCompleted(actors: actors, duration: duration, error: error?.prefix(bytes: LogLine.longest))
            default: event
            }
        append(.event(shortened, at: WallTime.milliseconds))
    }

    private mutating func append(_ outcome: Outcome) {
        lastNumber += 1
        if outcome.isCall { callCount += 1 }
        if case .refused = outcome { refused += 1 }
        let entry = Ended(number: lastNumber, outcome: outcome)
        if ended.count < Self.capacity {
            ended.append(entry)
        } else {
            ended[first] = entry
            first = (first + 1) % Self.capacity
        }
    }

    /// The entries, the newest first.
    var newest: [Ended] {
        (0..<ended.count).reversed().map { ended[(first + $0) % ended.count] }
    }

    func json(after: UInt64 = 0, limit: Int, where isWanted: (Outcome) -> Bool = { _ in true }) -> [InspectorJSON] {
        var shown: [InspectorJSON] = []
        for call in newest {
            guard shown.count < limit, call.number > after else { break }
            guard call.outcome.isCall, isWanted(call.outcome) else { continue }
            shown.append(.object([("number", .count(call.number))] + call.outcome.members))
        }
        return shown
    }

    func json(_ query: CallListQuery, pauses: UInt64) -> InspectorJSON {
        .object([
            ("last", .count(lastNumber)), ("retained", .count(ended.count { $0.outcome.isCall })),
            ("pauses", .count(pauses)), ("recorded", .count(callCount)), ("refused", .count(refused)),
            ("calls", .list(json(after: query.after, limit: query.limit) { query.matches($0) })),
        ])
    }

    /// The last error of each connection, by connection number.
    var lastErrors: [UInt64: InspectorJSON] {
        var found: [UInt64: InspectorJSON] = [:]
        for call in newest where call.outcome.isFailed {
            guard let connection = call.outcome.connection else { continue }
            if found[connection] == nil { found[connection] = .object(call.outcome.members) }
        }
        return found
    }
}

extension RecentCallBuffer.Entry {
    static func json(_ peer: ServerEvent.Peer) -> [(String, InspectorJSON)] {
        [
            ("connection", .count(peer.connection)), ("address", .text(peer.address.map { "\($0)" })),
            ("principal", .text(peer.principal)),
        ]
    }

    var json: InspectorJSON { .object(members) }

    var members: [(String, InspectorJSON)] {
        guard let call else { return [("call", .count(number))] }
        return [("call", .count(number))] + Self.json(call.peer) + [
            ("actor", .text(call.actor)), ("type", .text(call.type)), ("method", .text(call.method)),
            ("time", began > 0 ? .integer(began) : .null),
            ("seconds", duration.map { .number($0 / .seconds(1)) } ?? .null),
            ("error", .text(error.map { "\($0)" })),
        ] + Self.json(call.arguments) + (call.trace.map { [("trace", .text($0.traceID))] } ?? [])
            + json(details)
    }

    private func json(_ details: Details) -> [(String, InspectorJSON)] {
        let others = details.others.isEmpty ? [] : [("others", InspectorJSON.list(details.others.map { .text($0) }))]
        guard let failure = details.failure else { return others }
        return others + [
            ("thrown", .text(failure.errorDescription)), ("errorNumber", .text(failure.errorCode)),
            ("reason", .text(failure.reason)),
        ]
    }

    private static func json(_ arguments: ServerEvent.Call.Arguments?) -> [(String, InspectorJSON)] {
        switch arguments {
        case nil: []
        case .json(let json): [("arguments", .encoded(json))]
        case .tooLong(let bytes): [("argumentBytes", .count(bytes))]
        case .redacted: [("redacted", .flag(true))]
        }
    }
}
