import Foundation
import StateMachines
import TestSupport
import Testing
import XCTest

/// An XCTest test that passes unless the environment requests another count.
final class StoreInXCTest: XCTestCase {
    static let expectation = "TREBUCHET_EXPECTED_COUNT"

    private struct Counter: Reducer {
        struct State: Equatable { var count = 0 }
        enum Action: Equatable, Sendable { case add }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            state.count += 1
            return .none
        }
    }

    @MainActor
    func testCounter() async {
        let expected = ProcessInfo.processInfo.environment[Self.expectation].flatMap(Int.init) ?? 1
        let store = TestStore(initialState: Counter.State()) { Counter() }
        await store.send(.add) { $0.count = expected }
    }
}

@Suite("Test stores inside XCTestCase", .timeLimit(.minutes(5)))
struct XCTestReportTests {
    private func runInXCTest(expecting count: Int) async throws -> ChildProcess.Outcome {
        let test = "StateMachinesTests.StoreInXCTest/testCounter"
        let environment = "\(StoreInXCTest.expectation)=\(count)"
        return try await ChildProcess("/usr/bin/env", [environment, CommandLine.arguments[0], test], error: .merged)
            .finish()
    }

    @Test("an unexpected state fails the XCTest test")
    func failure() async throws {
        let outcome = try await runInXCTest(expecting: 2)
        #expect(outcome.status == 1)
        #expect(outcome.output.contains("XCTestReportTests.swift"))
        #expect(outcome.output.contains(".add did not change the state as expected"))
        #expect(outcome.output.contains("Executed 1 test, with 1 failure"))
    }

    @Test("an expected state passes the XCTest test")
    func success() async throws {
        let outcome = try await runInXCTest(expecting: 1)
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("Executed 1 test, with 0 failures"))
    }
}
