internal import TrebuchetActors

/// The calls of the last moments, by their numbers, and those that have ended, in their order.
struct CallRing {
    static let room = 2_000
    /// Calls that are known by their numbers, a power of two.
    private static let known = 4_096

    /// A call, as far as it is known.
    struct Entry: Sendable {
        var number: UInt64
        var call: ServerEvent.Call?
        var began: Int64 = 0
        var took: Duration?
        var error: TrebuchetError.Code?
    }

    /// One that was refused before it began.
    struct Refused: Sendable {
        let peer: ServerEvent.Peer
        let actor: String
        let target: String
        let error: TrebuchetError.Code
        let reason: String
        let time: Int64
    }

    /// What has ended. JSON is made of it for who looks, not for each call.
    enum Outcome: Sendable {
        case ended(ServerEvent.Call, Entry)
        case refused(Refused)

        var actor: String {
            switch self {
            case .ended(let call, _): call.actor
            case .refused(let refused): refused.actor
            }
        }

        var connection: UInt64 {
            switch self {
            case .ended(let call, _): call.peer.connection
            case .refused(let refused): refused.peer.connection
            }
        }

        var isFailed: Bool {
            switch self {
            case .ended(_, let entry): entry.error != nil
            case .refused: true
            }
        }

        var members: [(String, InspectorJSON)] {
            switch self {
            case .ended(_, let entry): entry.members
            case .refused(let refused):
                Entry.shown(refused.peer) + [
                    ("actor", .text(refused.actor)), ("method", .text(refused.target)),
                    ("time", .whole(refused.time)), ("error", .text("\(refused.error)")),
                    ("refused", .text(refused.reason)),
                ]
            }
        }
    }

    private struct Ended: Sendable {
        let number: UInt64
        let outcome: Outcome
    }

    private var entries: [Entry?] = []
    private var ended: [Ended] = []
    private var first = 0
    private var lastNumber: UInt64 = 0

    /// What is known of a call; its number alone when that is long ago.
    subscript(number: UInt64) -> Entry {
        guard !entries.isEmpty, let found = entries[Self.place(number)], found.number == number else {
            return Entry(number: number)
        }
        return found
    }

    private static func place(_ number: UInt64) -> Int { Int(number & UInt64(known - 1)) }

    mutating func begin(_ call: ServerEvent.Call) {
        if entries.isEmpty { entries = Array(repeating: nil, count: Self.known) }
        entries[Self.place(call.number)] = Entry(number: call.number, call: call, began: WallTime.milliseconds)
    }

    mutating func end(_ call: ServerEvent.Call, _ took: Duration, _ error: TrebuchetError.Code?) {
        var entry = self[call.number]
        entry.call = call
        entry.took = took
        entry.error = error
        if !entries.isEmpty, entries[Self.place(call.number)]?.number == call.number {
            entries[Self.place(call.number)] = entry
        }
        append(.ended(call, entry))
    }

    mutating func refuse(
        _ peer: ServerEvent.Peer, _ actor: String, _ target: String, _ error: TrebuchetError.Code, _ reason: String
    ) {
        append(
            .refused(
                Refused(
                    peer: peer, actor: actor, target: target, error: error, reason: String(reason.prefix(512)),
                    time: WallTime.milliseconds)))
    }

    private mutating func append(_ outcome: Outcome) {
        lastNumber += 1
        let made = Ended(number: lastNumber, outcome: outcome)
        if ended.count < Self.room {
            ended.append(made)
        } else {
            ended[first] = made
            first = (first + 1) % Self.room
        }
    }

    /// The newest first.
    private var newest: [Ended] {
        (0..<ended.count).reversed().map { ended[(first + $0) % ended.count] }
    }

    func shown(after: UInt64, limit: Int, where isWanted: (Outcome) -> Bool = { _ in true }) -> [InspectorJSON] {
        var shown: [InspectorJSON] = []
        for call in newest {
            guard shown.count < limit, call.number > after else { break }
            guard isWanted(call.outcome) else { continue }
            shown.append(.object([("place", .count(call.number))] + call.outcome.members))
        }
        return shown
    }

    func json(after: UInt64, limit: Int, pauses: UInt64) -> InspectorJSON {
        .object([
            ("last", .count(lastNumber)), ("kept", .count(ended.count)), ("pauses", .count(pauses)),
            ("calls", .list(shown(after: after, limit: limit))),
        ])
    }

    /// By their connections.
    var lastErrors: [UInt64: InspectorJSON] {
        var found: [UInt64: InspectorJSON] = [:]
        for call in newest where call.outcome.isFailed {
            let connection = call.outcome.connection
            if found[connection] == nil { found[connection] = .object(call.outcome.members) }
        }
        return found
    }
}

extension CallRing.Entry {
    static func shown(_ peer: ServerEvent.Peer) -> [(String, InspectorJSON)] {
        [
            ("connection", .count(peer.connection)), ("address", .text(peer.address.map { "\($0)" })),
            ("principal", .text(peer.principal)),
        ]
    }

    var json: InspectorJSON { .object(members) }

    var members: [(String, InspectorJSON)] {
        guard let call else { return [("call", .count(number))] }
        return [("call", .count(number))] + Self.shown(call.peer) + [
            ("actor", .text(call.actor)), ("type", .text(call.type)), ("method", .text(call.method)),
            ("time", began > 0 ? .whole(began) : .null),
            ("seconds", took.map { .number($0 / .seconds(1)) } ?? .null),
            ("error", .text(error.map { "\($0)" })),
        ] + Self.shown(call.arguments) + (call.trace.map { [("trace", .text($0.traceID))] } ?? [])
    }

    private static func shown(_ arguments: ServerEvent.Call.Arguments?) -> [(String, InspectorJSON)] {
        switch arguments {
        case nil: []
        case .json(let json): [("arguments", .written(json))]
        case .tooLong(let bytes): [("argumentBytes", .count(bytes))]
        case .redacted: [("redacted", .flag(true))]
        }
    }
}
