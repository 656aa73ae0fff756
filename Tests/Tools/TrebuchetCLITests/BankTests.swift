import Benchmarks
import Commands
import Foundation
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The actor that `trebuchet bench transfers` calls, and the command's output.
@Suite(.timeLimit(.minutes(5))) struct BankTests {
    private func withBank(_ body: (Bank) async throws -> Void) async throws {
        try await withTestServer { server in
            await server.expose(Bank(actorSystem: server.actorSystem), as: "bank")
        } body: { client, _ in
            try await body(client.resolve(Bank.self, id: "bank"))
        }
    }

    private func balances(_ bank: Bank) async -> [Int] {
        await bank.observeAccounts().first { _ in true }?.map(\.balance) ?? []
    }

    @Test("a transfer moves an amount, and the total is unchanged")
    func transfers() async throws {
        try await withBank { bank in
            let start = Bank.startingBalance
            try await bank.open(3)
            #expect(try await bank.total() == 3 * start)
            #expect(try await bank.transfer(from: 0, to: 2, amount: 10))
            #expect(await balances(bank) == [start - 10, start, start + 10])
            #expect(try await bank.transfer(from: 2, to: 1, amount: start + 10), "the whole balance")
            #expect(await balances(bank) == [start - 10, 2 * start + 10, 0])
            #expect(try await bank.transfer(from: 1, to: 1, amount: 5), "to the source account")
            #expect(await balances(bank) == [start - 10, 2 * start + 10, 0])
            #expect(try await bank.total() == 3 * start)
        }
    }

    @Test("a transfer over the balance is refused with false, and changes nothing")
    func refused() async throws {
        try await withBank { bank in
            let start = Bank.startingBalance
            try await bank.open(2)
            #expect(try await !bank.transfer(from: 0, to: 1, amount: start + 1))
            #expect(try await !bank.transfer(from: 0, to: 0, amount: .max))
            #expect(await balances(bank) == [start, start])
        }
    }

    @Test("unknown accounts, amounts below 1 and an invalid number of accounts are errors")
    func errors() async throws {
        try await withBank { bank in
            await #expect(throws: BankError.noSuchAccount(0)) { try await bank.transfer(from: 0, to: 0, amount: 1) }
            try await bank.open(2)
            await #expect(throws: BankError.noSuchAccount(2)) { try await bank.transfer(from: 2, to: 0, amount: 1) }
            await #expect(throws: BankError.noSuchAccount(-1)) { try await bank.transfer(from: 0, to: -1, amount: 1) }
            for amount in [0, -1, .min] {
                await #expect(throws: BankError.wrongAmount(amount)) {
                    try await bank.transfer(from: 0, to: 1, amount: amount)
                }
            }
            for count in [0, -1, Bank.largestCount + 1] {
                await #expect(throws: BankError.wrongCount(count)) { try await bank.open(count) }
            }
            #expect(try await bank.total() == 2 * Bank.startingBalance)
        }
    }

    @Test("a bank opened again has only the new accounts, and keeps them when its server is killed")
    func persisted() async throws {
        try await withTestServer(store: MemoryStore()) { server in
            await server.expose(Bank(actorSystem: server.actorSystem), as: "bank")
        } body: { test in
            var bank = try await test.connect().resolve(Bank.self, id: "bank")
            try await bank.open(10)
            try await bank.open(3)
            #expect(try await bank.transfer(from: 0, to: 1, amount: 7))
            await test.kill()
            try await test.restart()
            bank = try await test.connect().resolve(Bank.self, id: "bank")
            let start = Bank.startingBalance
            #expect(await balances(bank) == [start - 7, start + 7, start])
        }
    }

    @Test("serve --bench --data keeps the bank through kill -9; without --bench there is none")
    func served() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("data.db").path
        func call(_ url: String, _ words: String...) async throws -> ChildProcess.Outcome {
            try await ChildProcess(ServeProcess.tool, ["call", "--url", url, "bank"] + words, error: .captured).finish()
        }

        let server = try await ServeProcess(arguments: ["--bench", "--data", file])
        #expect(try await call(server.url, "open(_:)", "5").status == 0)
        let moved = try await call(server.url, "transfer(from:to:amount:)", "1", "4", "9")
        #expect(moved.output == "true\n", "\(moved)")
        await server.kill()
        let again = try await ServeProcess(arguments: ["--bench", "--data", file])
        #expect(try await call(again.url, "total()").output == "\(5 * Bank.startingBalance)\n")
        let seen = try await ChildProcess(
            ServeProcess.tool,
            ["observe", "--url", again.url, "bank", "observeAccounts", "--path", "/4/balance", "--count", "1"]
        ).finish()
        #expect(seen.output == "\(Bank.startingBalance + 9)\n")
        #expect(await again.stop() == 0)

        let other = try await ServeProcess()
        #expect(try await call(other.url, "total()").status == 1)
        await other.stop()
    }

    // MARK: The command

    private func bench(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, ["bench", "transfers"] + arguments, error: .captured).finish()
    }

    /// One second is enough for single transfers to be written even when other tests keep the disk busy.
    private static let short = ["--connections", "2", "--in-flight", "4", "--seconds", "1", "--json"]

    @Test("bench transfers compares persistence on disk with SQLite alone and with memory, and few accounts with many")
    func metrics() async throws {
        let outcome = try await ChildProcess(
            ServeProcess.tool, ["bench", "transfers", "--accounts", "300"] + Self.short, error: .captured
        ).finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let metrics = try JSONDecoder().decode([String: Double].self, from: Data(outcome.output.utf8))
        #expect(metrics["accounts"] == 300 && metrics["connections"] == 2 && metrics["in_flight"] == 4)
        var names = ["fdatasync_per_second", "fdatasync_per_second_at_the_end"]
        for kind in ["persisted", "memory", "sqlite"] { names.append("\(kind)_300_percent_of_100") }
        for count in [100, 300] {
            for kind in ["persisted", "memory"] {
                names += ["transfers_per_second", "p50_us", "p99_us"].map { "\(kind)_\($0)_\(count)" }
            }
            names.append("sqlite_transfers_per_second_\(count)")
            // Rounded to tenths, the ratios are 0 when the disk is busy.
            for ratio in ["percent_of_memory", "percent_of_sqlite", "transfers_per_fdatasync"] {
                #expect(metrics.keys.contains("persisted_\(ratio)_\(count)"), "\(ratio)")
            }
        }
        for name in names { #expect(try #require(metrics[name], "\(name)") > 0, "\(name)") }
    }

    @Test(
        "bench transfers measures a single half, and leaves no file behind",
        arguments: [("--in-memory", "memory", "persisted"), ("--persisted", "persisted", "memory")])
    func half(option: String, measured: String, not: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let outcome = try await ChildProcess(
            ServeProcess.tool,
            ["bench", "transfers", "--accounts", "100", "--data", folder.path, option] + Self.short, error: .captured
        ).finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let metrics = try JSONDecoder().decode([String: Double].self, from: Data(outcome.output.utf8))
        #expect(metrics.keys.contains("\(measured)_transfers_per_second_100"))
        #expect(!metrics.keys.contains("\(not)_transfers_per_second_100"))
        #expect(!metrics.keys.contains { $0.contains("percent_of_100") }, "100 accounts compared with themselves")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test("bench transfers reports option errors, and explains the use of a memory disk in its help")
    func options() async throws {
        for (arguments, text) in [
            (["--accounts", "0"], "--accounts must be a number between 1 and 1000000"),
            (["--connections", "0"], "--connections must be"), (["--in-flight", "x"], "--in-flight must be"),
            (["--persisted", "--in-memory"], "--persisted and --in-memory cannot be combined"),
            (["--seconds", "0"], "--seconds"),
        ] {
            let outcome = try await ChildProcess(
                ServeProcess.tool, ["bench", "transfers"] + arguments, error: .captured
            ).finish()
            #expect(outcome.status == 2, "\(arguments)")
            #expect(outcome.error.contains(text), "\(outcome.error)")
        }
        let nowhere = try await bench("--data", "/nowhere/at/all", "--seconds", "0.1")
        #expect(nowhere.status == 2 && nowhere.error.contains("/nowhere/at/all"), "\(nowhere)")
        let help = try await bench("--help")
        #expect(help.status == 0 && help.output.contains("tmpfs, gives no valid result"))
    }
}
