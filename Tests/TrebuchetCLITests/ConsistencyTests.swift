import TestSupport
import Testing

/// Short seeds of `scripts/consistency`, which has hundreds of long ones.
@Suite(.timeLimit(.minutes(5))) struct ConsistencyTests {
    @Test("what clients see and are told fits what the server has, though it was killed and lines failed")
    func shortSeed() async throws {
        // One with two kills of the server.
        let arguments = ["--seed", "3", "--clients", "4", "--calls", "20"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(!outcome.output.contains(" 0 kills"), "\(outcome.output)")
    }

    @Test(
        "clients of the services in Swift and in Python are shown what was acknowledged, once, and nothing that is not theirs",
        arguments: [1, 3])
    func services(seed: Int) async throws {
        let arguments = ["--services", "--seed", "\(seed)", "--rounds", "6"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing found"), "\(outcome.output)")
    }

    @Test("a bank has what acknowledged transfers made of it, whenever its server is killed", arguments: 1...4)
    func bank(seed: Int) async throws {
        let arguments = ["--bank", "--seed", "\(seed)", "--accounts", "500"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing found"), "\(outcome.output)")
        #expect(!outcome.output.contains(" 0 transfers"), "\(outcome.output)")
    }

    @Test("what clients in JavaScript see and are told fits what the server has, too", arguments: [3, 5])
    func web(seed: Int) async throws {
        let arguments = ["--web", "--seed", "\(seed)", "--clients", "4", "--calls", "20"]
        let outcome = try await ChildProcess(ServeProcess.built("Consistency"), arguments, error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing found"), "\(outcome.output)")
    }

    @Test("the program says what is wrong with its options")
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
