import Benchmarks
import Foundation
import Glibc
import Platform
import TestSupport
import Transports
import Trebuchet
import TrebuchetTesting

/// Runs one seed with a bank: tellers have many transfers in flight while the server is killed. After each restart the balances
/// must match the acknowledged transfers.
final class BankJudge {
    /// Of tellers.
    private static let connections = 4

    private let options: Options
    private let folder: String
    private let port: PortReservation
    private let seed: UInt64
    private var random: RandomSource
    private let server: JudgedServer
    private var outcome = BankOutcome()

    init(seed: UInt64, _ options: Options) throws {
        self.seed = seed
        self.options = options
        random = RandomSource(seed: seed &* 7_919)
        folder = NSTemporaryDirectory() + "trebuchet-bank-\(getpid())-\(seed)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        port = PortReservation(SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false))
        server = JudgedServer(["bank", folder + "/bank.db", "\(port.port)"], within: options.limit)
    }

    func run() async -> BankOutcome {
        do {
            try await server.start()
            var balances = try await open()
            for round in 0..<Int.random(in: 2...5, using: &random) where outcome.findings.isEmpty {
                balances =
                    Int.random(in: 0..<6, using: &random) == 0
                    ? try await killOpening(balances) : try await killTransfers(balances, round)
                if Int.random(in: 0..<4, using: &random) == 0 { balances = try await open() }
            }
            // The state after a kill is persisted too.
            if outcome.findings.isEmpty {
                try await server.restart(SIGTERM)
                try await judge(BankLedger(balances))
            }
        } catch let halt as JudgedServer.Halt {
            outcome.findings.append(halt.description)
        } catch {
            outcome.findings.append("\(error)")
        }
        if let program = server.program {
            program.kill()
            _ = await eventually(within: .seconds(5)) { !program.isRunning }
        }
        outcome.kills = server.kills
        outcome.stops = server.stops
        try? FileManager.default.removeItem(atPath: folder)
        return outcome
    }

    private func pause(upTo milliseconds: Int) async throws {
        try await Task.sleep(for: .microseconds(Int.random(in: 0...milliseconds * 1_000, using: &random)))
    }

    // MARK: Running

    /// As many accounts as one of few, or one of many, has: few have large parts of the state changed, many small ones.
    private func drawCount() -> Int {
        let most = Double.random(in: 0...1, using: &random)
        return max(1, Int(pow(Double(options.accounts), most).rounded()))
    }

    private func open() async throws -> [Int] {
        let count = drawCount()
        try await Self.withBank(port.port) { try await $0.open(count) }
        outcome.accounts += count
        return Array(repeating: Bank.startingBalance, count: count)
    }

    /// Kills the server while another bank is opened: then there is that or the old one.
    private func killOpening(_ balances: [Int]) async throws -> [Int] {
        let count = drawCount()
        let opening = Self.opening(count, port.port)
        try await pause(upTo: 20)
        try await server.restart(SIGKILL)
        let wasOpened = await opening.value
        outcome.killedOpenings += 1
        let fresh = Array(repeating: Bank.startingBalance, count: count)
        let (found, _) = try await read()
        return try await judge(BankLedger(wasOpened || found == fresh ? fresh : balances))
    }

    /// Returns a task whose result is true if the account is known to be open.
    private static func opening(_ count: Int, _ port: Int) -> Task<Bool, Never> {
        Task {
            do {
                try await withBank(port) { try await $0.open(count) }
                return true
            } catch {
                return false
            }
        }
    }

    private func killTransfers(_ balances: [Int], _ round: Int) async throws -> [Int] {
        let ledger = BankLedger(balances)
        let isEarly = Int.random(in: 0..<4, using: &random) == 0
        let enough = Int.random(in: isEarly ? 0...5 : 50...800, using: &random)
        let isKill = Int.random(in: 0..<6, using: &random) > 0
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<Self.connections {
                let random = RandomSource(seed: seed &* 101 &+ UInt64(round * 8 + number))
                group.addTask { [port] in await Self.serve(port.port, ledger, balances.count, random) }
            }
            // A teller that connects later would use the next server and would not end.
            try await server.wait("for the tellers to connect") { ledger.now.connections == Self.connections }
            try await server.wait("for \(enough) transfers") { ledger.answers >= enough }
            try await pause(upTo: 8)
            try await server.restart(isKill ? SIGKILL : SIGTERM)
        }
        let now = ledger.now
        outcome.transferred += now.transferred
        outcome.refused += now.refused
        outcome.unknown += now.unknown
        return try await judge(ledger)
    }

    /// Eight tellers on one connection, until it ends.
    private static func serve(_ port: Int, _ ledger: BankLedger, _ count: Int, _ random: RandomSource) async {
        _ = try? await withBank(port) { bank in
            ledger.noteConnection()
            await withTaskGroup(of: Void.self) { group in
                var random = random
                for _ in 0..<8 {
                    let own = RandomSource(seed: random.next())
                    group.addTask { await transfer(bank, ledger, count, own) }
                }
            }
        }
    }

    private static func transfer(_ bank: Bank, _ ledger: BankLedger, _ count: Int, _ random: RandomSource) async {
        var random = random
        while !Task.isCancelled {
            let from = Int.random(in: 0..<count, using: &random)
            let to = Int.random(in: 0..<count, using: &random)
            let amount = Int.random(in: 1...Bank.startingBalance * 3 / 4, using: &random)
            do {
                let wasMade = try await bank.transfer(from: from, to: to, amount: amount)
                ledger.note(wasMade, from: from, to: to, amount: amount)
            } catch let error as BankError {
                return ledger.note(strange: "a transfer between accounts that are there: \(error)")
            } catch {
                return ledger.note(nil, from: from, to: to, amount: amount)
            }
        }
    }

    // MARK: Balances

    /// Waits until the bank has the expected balances, and returns them.
    @discardableResult
    private func judge(_ ledger: BankLedger) async throws -> [Int] {
        let (balances, total) = try await read()
        outcome.findings += ledger.now.findings(balances, total: total)
        return balances
    }

    private func read() async throws -> (balances: [Int], total: Int) {
        try await Self.withBank(port.port) { bank in
            guard let accounts = await bank.observeAccounts().first(where: { _ in true }) else {
                throw JudgedServer.Halt(description: "the bank shows no accounts")
            }
            guard accounts.map(\.id) == Array(0..<accounts.count) else {
                throw JudgedServer.Halt(
                    description: "the accounts are not 0, 1, 2 and so on: \(accounts.map(\.id).prefix(50))")
            }
            return (accounts.map(\.balance), try await bank.total())
        }
    }

    private static func withBank<Value: Sendable>(
        _ port: Int, _ body: @Sendable (Bank) async throws -> Value
    ) async throws -> Value {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
        do {
            try await client.connect()
            let value = try await body(client.resolve(Bank.self, id: "bank"))
            await client.close()
            return value
        } catch {
            await client.close()
            throw error
        }
    }
}
