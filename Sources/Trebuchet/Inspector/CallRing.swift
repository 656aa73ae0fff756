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

    /// One that has ended, or was refused.
    struct Ended: Sendable {
        let number: UInt64
        let actor: String
        let connection: UInt64
        let isFailed: Bool
        let json: InspectorJSON
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
        append(entry.json, call.actor, call.peer, isFailed: error != nil)
    }

    mutating func refuse(
        _ peer: ServerEvent.Peer, _ actor: String, _ target: String, _ error: TrebuchetError.Code, _ reason: String
    ) {
        append(
            .object(
                Entry.shown(peer) + [
                    ("actor", .text(actor)), ("method", .text(target)), ("time", .whole(WallTime.milliseconds)),
                    ("error", .text("\(error)")), ("refused", .text(String(reason.prefix(512)))),
                ]), actor, peer, isFailed: true)
    }

    private mutating func append(
        _ json: InspectorJSON, _ actor: String, _ peer: ServerEvent.Peer, isFailed: Bool
    ) {
        lastNumber += 1
        let made = Ended(
            number: lastNumber, actor: actor, connection: peer.connection, isFailed: isFailed, json: json)
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

    func shown(after: UInt64, limit: Int, where isWanted: (Ended) -> Bool = { _ in true }) -> [InspectorJSON] {
        var shown: [InspectorJSON] = []
        for call in newest {
            guard shown.count < limit, call.number > after else { break }
            guard isWanted(call), case .object(let members) = call.json else { continue }
            shown.append(.object([("place", .count(call.number))] + members))
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
        for call in newest where call.isFailed && found[call.connection] == nil { found[call.connection] = call.json }
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

    var json: InspectorJSON {
        guard let call else { return .object([("call", .count(number))]) }
        return .object(
            [("call", .count(number))] + Self.shown(call.peer) + [
                ("actor", .text(call.actor)), ("type", .text(call.type)), ("method", .text(call.method)),
                ("time", began > 0 ? .whole(began) : .null),
                ("seconds", took.map { .number($0 / .seconds(1)) } ?? .null),
                ("error", .text(error.map { "\($0)" })),
            ] + Self.shown(call.arguments))
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
