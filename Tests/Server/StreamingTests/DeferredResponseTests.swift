import Networking
import TestSupport
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors

/// Responses that wait for streams of their connection, without a network.
@Suite(.timeLimit(.minutes(5)), .serialized) struct DeferredResponseTests {
    private static let reactor = FanOutRig.newReactor()
    private var reactor: Reactor { Self.reactor }

    /// States that one connection observes. `@unchecked Sendable`: used on the rig's reactor only.
    private final class Scene: @unchecked Sendable {
        let rig: FanOutRig
        let states: [FanOutRig.Observed]
        let connection: ServerConnection
        let link: FanOutRig.Link

        init(_ reactor: Reactor, states count: Int, filter: StreamFilter? = nil, text: String = "") throws {
            rig = FanOutRig(reactor)
            (connection, link) = rig.connection()
            connection.streamUsage.filtered = filter == nil ? 0 : 1
            let rig = rig
            states = (0..<count).map { _ in rig.observed() }
            for state in states {
                state.set(text)
                let source = try filter.map { try state.source.filtered($0, clock: reactor) } ?? state.source
                rig.observe(source, connection)
            }
            rig.endTurns()
        }

        /// Responds to a call.
        func respond() { connection.succeed(UnsafeRawBufferPointer(start: nil, count: 0), nil) }

        var evaluations: Int { states.reduce(0) { $0 + ($1.source.evaluator?.count ?? 0) } }
    }

    private func scene(_ states: Int, filter: StreamFilter? = nil, text: String = "") async throws -> Scene {
        try await reactor.perform { [reactor] in
            Result { try Scene(reactor, states: states, filter: filter, text: text) }
        }.get()
    }

    private static let large = String(repeating: "x", count: StateSource.smallestLarge)

    @Test("with many own streams a step sends what fits in its time slice, and the responses follow all of them")
    func slices() async throws {
        let scene = try await scene(40)
        let (sent, answers) = await reactor.perform {
            scene.rig.server.catchUpTime = 0
            scene.link.versions = []
            for state in scene.states { state.count() }
            for _ in 0..<3 { scene.respond() }
            return (scene.link.versions.count, scene.link.answers)
        }
        #expect(answers == 0)
        #expect((1...3).contains(sent), "\(sent) of 40 streams in the step of 3 calls")
        #expect(await eventually { await reactor.perform { scene.link.answers == 3 } })
        let (versions, atAnswers, steps) = await reactor.perform {
            (scene.link.versions, scene.link.versionsAtAnswers, scene.rig.server.catchUpSteps)
        }
        #expect(versions == Array(repeating: 3, count: 40))
        #expect(atAnswers == [3, 3, 3])
        #expect(steps > 1)
        await reactor.perform {
            #expect(scene.connection.deferredResponses == nil)
            scene.connection.linkDidClose()
        }
    }

    @Test("a large state is evaluated for its filters on another thread, and the response follows the update")
    func largeFilter() async throws {
        let scene = try await scene(1, filter: .path("/number"), text: Self.large)
        // The size is known from now on.
        let (sent, answers) = await reactor.perform {
            scene.states[0].count()
            scene.respond()
            return (scene.link.versions, scene.link.answers)
        }
        #expect(sent == [2])
        #expect(answers == 0)
        #expect(await eventually { await reactor.perform { scene.link.answers == 1 } })
        let (versions, atAnswers, evaluations) = await reactor.perform {
            (scene.link.versions, scene.link.versionsAtAnswers, scene.evaluations)
        }
        #expect(versions == [2, 3])
        #expect(atAnswers == [3])
        #expect(evaluations == 1)
        await reactor.perform { scene.connection.linkDidClose() }
    }

    @Test("changes during an evaluation are evaluated as one version, and each response follows its own change")
    func conflated() async throws {
        let scene = try await scene(1, filter: .path("/number"), text: Self.large)
        await reactor.perform {
            for _ in 0..<10 {
                scene.states[0].count()
                scene.respond()
            }
        }
        #expect(await eventually { await reactor.perform { scene.link.answers == 10 } })
        let (versions, atAnswers, evaluations) = await reactor.perform {
            (scene.link.versions, scene.link.versionsAtAnswers, scene.evaluations)
        }
        #expect(versions == [2, 3, 12])
        #expect(atAnswers.first == 3 && atAnswers.dropFirst().allSatisfy { $0 == 12 }, "\(atAnswers)")
        #expect(evaluations == 2)
        await reactor.perform { scene.connection.linkDidClose() }
    }

    @Test("a version that the filter rejects delays the response no longer than its evaluation")
    func rejected() async throws {
        let scene = try await scene(1, filter: .where("/number", .equal(.int(0))), text: Self.large)
        await reactor.perform {
            scene.states[0].count()
            scene.respond()
        }
        #expect(await eventually { await reactor.perform { scene.link.answers == 1 } })
        #expect(await reactor.perform { scene.link.versions } == [2])
        await reactor.perform { scene.connection.linkDidClose() }
    }

    @Test("a new subscriber of a filter of a large state receives the current value")
    func newSubscriber() async throws {
        let scene = try await scene(1, filter: .path("/number"), text: Self.large)
        let (connection, link) = try await reactor.perform {
            Result {
                scene.states[0].count()
                let made = scene.rig.connection()
                let filter = StreamFilter.path("/text").distinct()
                scene.rig.observe(try scene.states[0].source.filtered(filter, clock: Self.reactor), made.connection)
                return made
            }
        }.get()
        #expect(await eventually { await reactor.perform { link.versions == [3] } })
        #expect(await eventually { await reactor.perform { scene.link.versions == [2, 3] } })
        await reactor.perform {
            connection.linkDidClose()
            scene.connection.linkDidClose()
        }
    }

    @Test("a response ends its wait when the filter's stream ends, and is dropped when the connection closes")
    func ends() async throws {
        let scene = try await scene(1, filter: .path("/number"), text: Self.large)
        let (held, released) = await reactor.perform {
            scene.states[0].count()
            scene.respond()
            let held = scene.connection.deferredResponses != nil
            scene.connection.linkDidClose()
            return (held, scene.connection.deferredResponses == nil)
        }
        #expect(held && released)
        let other = try await self.scene(1, filter: .path("/number"), text: Self.large)
        await reactor.perform {
            other.states[0].count()
            other.respond()
            other.states[0].source.endStream()
        }
        #expect(await eventually { await reactor.perform { other.connection.deferredResponses == nil } })
        await reactor.perform {
            #expect(scene.link.answers == 0)
            #expect(!other.rig.shard.hasEvaluations)
            other.connection.linkDidClose()
        }
    }
}
