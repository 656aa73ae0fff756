import TestSupport
import Testing

/// Short seeds of `scripts/stress consistency`, which runs hundreds of long ones.
@Suite(.timeLimit(.minutes(5))) struct ConsistencyTests {
    @Test("clients' views and responses match the server's data, despite kills and connection failures")
    func shortSeed() async throws {
        // A seed with two kills of the server.
        let arguments = ["--seed", "3", "--clients", "4", "--calls", "20"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(!outcome.output.contains(" 0 kills"), "\(outcome.output)")
    }

    @Test(
        "clients of the services in Swift and in Python see acknowledged writes once, and no data of others",
        arguments: [1, 3])
    func services(seed: Int) async throws {
        let arguments = ["--services", "--seed", "\(seed)", "--rounds", "6"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing found"), "\(outcome.output)")
    }

    @Test("a bank's balances match the acknowledged transfers, whenever its server is killed", arguments: 1...4)
    func bank(seed: Int) async throws {
        let arguments = ["--bank", "--seed", "\(seed)", "--accounts", "500"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing found"), "\(outcome.output)")
        #expect(!outcome.output.contains(" 0 transfers"), "\(outcome.output)")
    }

    @Test("the views and responses of JavaScript clients match the server's data", arguments: [3, 5])
    func web(seed: Int) async throws {
        let arguments = ["--web", "--seed", "\(seed)", "--clients", "4", "--calls", "20"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing found"), "\(outcome.output)")
    }

    @Test("the program reports option errors")
    func options() async throws {
        for arguments in [
            ["--seeds", "2"], ["--clients", "5"], ["--seed"], ["--accounts", "1"], ["--nothing", "1"],
        ] {
            let outcome = try await ChildProcess(
                ServeProcess.built("Consistency"), arguments, error: .captured
            ).finish()
            #expect(outcome.status == 2, "\(arguments)")
            #expect(outcome.error.contains(arguments[0]), "\(outcome.error)")
        }
    }
}
