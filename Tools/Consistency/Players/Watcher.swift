import Trebuchet

/// Reads all that a game shows, until it closes, and checks each value.
struct Watcher: Sendable {
    let name: String
    let number: Int
    let game: Game
    /// Stops the reader of events.
    let gate: Gate
    let progress: ClientProgress
    let sent: SentBytes
    /// Whether the game lives in a cluster.
    let isOfNodes: Bool
    let strictness: Strictness
    /// Whether the game may lose published states.
    private var mayLose: Bool { strictness.mayLose }
    private var isOrdered: Bool { strictness == .ordered }

    /// Returns when all readers have seen the end.
    func run() async -> Totals {
        async let ledger = readLedger()
        async let board = readBoard()
        async let rounds = readRounds()
        async let tally = readTally()
        async let moves = readMoves()
        async let entries = readEntries()
        var (totals, calls) = await ledger
        let ran = Set(calls)
        totals.add(await board)
        totals.add(await rounds)
        totals.add(await tally)
        found((await entries).compare(with: calls))
        let (moved, reported) = await moves
        totals.add(moved)
        totals.takenBack = reported.subtracting(ran).count
        return totals
    }

    private func note(_ reader: String, _ text: String?) { progress.set("\(name), \(reader)", text) }

    private func found(_ text: String?) { if let text { Output.finding("\(name): \(text)") } }

    private func final(_ state: String, _ digest: String) {
        Output.printLine("final \(number) \(state) \(digest) \(name)")
    }

    /// Gives the calls that were in the ledger in the end, too.
    private func readLedger() async -> (Totals, [Int]) {
        var (check, totals) = (LedgerCheck(strictness.stepsBack), Totals())
        note("ledger", "waits for the first value")
        while true {
            let stream = await game.observeLedger()
            for await ledger in stream {
                totals.values += 1
                found(check.take(ledger))
                note("ledger", check.description)
                guard ledger.isClosed else { continue }
                final("ledger", ledger.digest)
                note("ledger", nil)
                return (totals, ledger.calls)
            }
            if totals.values == 0, mayNotBegin(stream.outcome) { continue }
            found("the ledger's stream ended after \(check.description): \(String(describing: stream.outcome))")
            return (totals, [])
        }
    }

    private func readBoard() async -> Totals {
        var (check, totals) = (BoardCheck(), Totals())
        note("board", "waits for the first value")
        while true {
            let stream = await game.observeBoard()
            for await board in stream {
                totals.values += 1
                sent.note(number, board)
                found(check.take(board))
                note("board", check.description)
                guard board.isClosed else { continue }
                final("board", board.digest)
                note("board", nil)
                return totals
            }
            if totals.values == 0, mayNotBegin(stream.outcome) { continue }
            found("the board's stream ended at \(check.description): \(String(describing: stream.outcome))")
            return totals
        }
    }

    /// Returns whether the stream could not start because no node could load the game. A started stream continues.
    private func mayNotBegin(_ outcome: StreamOutcome?) -> Bool {
        guard isOfNodes, !isOrdered, case .failed(let error) = outcome else { return false }
        return error.code == .unavailable
    }

    private func readRounds() async -> Totals {
        await readEach("rounds", RoundCheck(), mayOverflow: true) { await game.observeRound() }
    }

    private func readTally() async -> Totals {
        await readEach("tally", RoundCheck(strictness.stepsBack), mayOverflow: !isOrdered) { await game.observeTally() }
    }

    private func readEach(
        _ name: String, _ first: RoundCheck, mayOverflow: Bool, _ observe: () async -> StateStream<Round>
    ) async -> Totals {
        var (check, totals) = (first, Totals())
        while true {
            note(name, "waits after \(check.description)")
            let stream = await observe()
            var hasNotBegun = true
            for await round in stream {
                hasNotBegun = false
                totals.values += 1
                found(check.take(round).map { "\(name): \($0)" })
                note(name, check.description)
                guard round.isLast else { continue }
                note(name, nil)
                return totals
            }
            if hasNotBegun, mayNotBegin(stream.outcome) { continue }
            guard case .failed(let error) = stream.outcome, error.code == .overflow, mayOverflow else {
                found("the stream of \(name) ended at \(check.description): \(String(describing: stream.outcome))")
                return totals
            }
            check.overflowed()
        }
    }

    /// Reads the entries. All are persisted, so none is missed, even after a restart of the server.
    private func readEntries() async -> EntryCheck {
        var check = EntryCheck()
        var isOver = false
        while !isOver {
            note("entries", "waits")
            var hasBegun = false
            do {
                for try await entry in await game.observeEntries() {
                    hasBegun = true
                    found(check.take(entry))
                    note("entries", check.description)
                    isOver = entry.isLast
                    if isOver { break }
                }
            } catch  where error.code == .unavailable && isOfNodes && !isOrdered && !hasBegun {
                continue
            } catch  where error.code == .overflow && (mayLose || isOfNodes && check.isEmpty) {
                // The stream has lost entries and reports it. A reader without entries is also notified when an actor without entries moves.
                check = EntryCheck()
            } catch {
                found("the stream of entries ended after \(check.description): \(error)")
                isOver = true
            }
        }
        note("entries", nil)
        return check
    }

    /// Gives the calls that events told of, too.
    private func readMoves() async -> (Totals, Set<Int>) {
        var check = MoveCheck(mayRunAgain: isOfNodes)
        var isOver = false
        while !isOver {
            note("moves", "waits after \(check.description)")
            var moves = await game.observeMoves().makeAsyncIterator()
            var hasBegun = false
            do {
                while !isOver {
                    await gate.pass()
                    guard let move = try await moves.next() else { throw TrebuchetError(.internal, "no error") }
                    hasBegun = true
                    found(check.take(move))
                    note("moves", check.description)
                    isOver = move.isLast
                }
            } catch let error as TrebuchetError where error.code == .overflow {
                // The client itself detected missing numbers: the server has omitted events without reporting it.
                if error.message.contains("were not received") { found("after \(check.description): \(error)") }
                check.overflowed(error.message.contains("the reader is") ? .ofReader : .ofServer)
            } catch let error as TrebuchetError
                where !hasBegun && isOfNodes && !isOrdered && error.code == .unavailable
            {
                continue
            } catch {
                found("the stream of moves ended after \(check.description): \(error)")
                isOver = true
            }
        }
        note("moves", nil)
        var totals = Totals()
        totals.events = check.count
        totals.eventBytes = check.bytes
        totals.overflowsOfNewIncarnations = check.overflowsOfNewIncarnations
        totals.overflowsOfReaders = check.overflowsOfReaders
        totals.overflowsOfConnections = check.overflowsOfConnections
        return (totals, check.calls)
    }
}
