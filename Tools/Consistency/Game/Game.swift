import Trebuchet

/// The actor under test, which is called, observed, killed and restarted. Every changing call changes all observed states that are not
/// persisted, and each `@Idempotent` call also the persisted ones, so that any loss is visible.
@Trebuchet
distributed actor Game {
    /// Events that are kept for those who are behind.
    static let eventBuffer = 512
    private static let cells = 60

    /// Which life of the game it is: another one after each start of the server.
    private let life: Int
    private var lastMove = 0

    @StreamedState(persisted: true) var ledger: TransferLedger = TransferLedger()
    @StreamedState var board: VersionedBoardState = VersionedBoardState()
    @StreamedState(delivery: .every(buffer: 256)) var round: Round = Round()
    @StreamedEvents(buffer: 512) var moves: Move
    /// The life of the persisted state, which outlasts that of the server.
    @StreamedState(delivery: .every(buffer: 256), persisted: true) var tally: Round = Round(life: 1)
    @StreamedEvents(persisted: true, keeping: 10_000) var entries: Entry

    init(actorSystem: TrebuchetActorSystem) {
        self.actorSystem = actorSystem
        let life = Int.random(in: 1...(1 << 52))
        self.life = life
        board = VersionedBoardState(life: life, cells: KeyedCollection((0..<Self.cells).map { Cell(id: $0) }))
        round = Round(life: life)
    }

    /// Writes a call into the ledger: what runs twice, or was acknowledged and is lost, shows there.
    @Idempotent
    distributed func put(_ call: Int, padding: Int) throws -> Receipt { try run(call, padding: padding) }

    /// The same, but suspending, in a task.
    @Idempotent
    distributed func putSlowly(_ call: Int, padding: Int, milliseconds: Int) async throws -> Receipt {
        try await Task.sleep(for: .milliseconds(milliseconds))
        return try run(call, padding: padding)
    }

    distributed func move(_ cell: Int, padding: Int) throws -> Receipt {
        try change(cell, padding: [padding], call: 0)
        return Receipt(life: life, turn: board.turn)
    }

    /// So many events in one call.
    distributed func burst(_ count: Int, padding: Int) throws {
        try change(count, padding: Array(repeating: padding, count: count), call: 0)
    }

    distributed func look() -> Receipt { Receipt(life: life, turn: board.turn) }

    /// Changes nothing any more but that each time one more event and one more round say so; gives what there is in the end.
    distributed func close() -> Ending {
        if !board.isClosed {
            board.turn += 1
            board.isClosed = true
            ledger.isClosed = true
        }
        send(padding: 0, call: 0)
        round = Round(life: life, number: round.number + 1, isLast: true)
        tally = Round(life: 1, number: tally.number + 1, isLast: true)
        $entries.send(Entry(turn: ledger.calls.count, isLast: true))
        return Ending(ledger: ledger, ledgerDigest: ledger.digest, boardDigest: board.digest)
    }

    private func run(_ call: Int, padding: Int) throws -> Receipt {
        try change(call, padding: [padding], call: call)
        ledger.calls.append(call)
        ledger.points += TransferLedger.points(call)
        tally.number += 1
        $entries.send(Entry(turn: ledger.calls.count, call: call))
        return Receipt(life: life, turn: ledger.calls.count)
    }

    private func change(_ cell: Int, padding: [Int], call: Int) throws {
        guard !board.isClosed else { throw GameError.closed }
        for padding in padding { send(padding: padding, call: call) }
        board.cells.update(id: cell % Self.cells) { $0.points += 1 }
        board.points += 1
        board.turn += 1
        round.number += 1
    }

    private func send(padding: Int, call: Int) {
        lastMove += 1
        board.sentBytes += padding
        $moves.send(
            Move(
                life: life, number: lastMove, call: call, padding: String(repeating: "x", count: padding),
                isLast: board.isClosed))
    }
}

enum GameError: Error, Codable, Equatable {
    case closed
}

/// The response of a call: the life of the game in which it ran, and its position among the calls there.
struct Receipt: Codable, Sendable, Equatable {
    var life: Int
    var turn: Int
}

struct Ending: Codable, Sendable {
    var ledger: TransferLedger
    var ledgerDigest: String
    var boardDigest: String
}
