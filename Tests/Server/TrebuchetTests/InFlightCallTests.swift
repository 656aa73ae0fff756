import TestSupport
import Testing

@testable import Trebuchet
@testable import TrebuchetActors

@Suite(.timeLimit(.minutes(5))) struct InFlightCallTests {
    private final class Request: ForwardedRequest {
        var isCancelled = false
        var isRepeatable: Bool { false }
        var mayHaveBegun: Bool { false }
        func cancel() { isCancelled = true }
        func whenSent(_ body: @escaping @Sendable () -> Void) -> Bool { false }
    }

    /// The phases, and the events that change them.
    private enum Name: String, CaseIterable {
        case registered, awaitingActivation, running, readingStore, awaitingExecution, forwarded, awaitingStreams
        case intercepted, continuing, continuingAbandoned, abandoned, ended

        init(_ phase: InFlightCall.Phase) {
            self =
                switch phase {
                case .registered: .registered
                case .awaitingActivation: .awaitingActivation
                case .running: .running
                case .readingStore: .readingStore
                case .awaitingExecution: .awaitingExecution
                case .forwarded: .forwarded
                case .awaitingStreams: .awaitingStreams
                case .intercepted: .intercepted
                case .continuing(isAnswered: true): .continuing
                case .continuing(isAnswered: false): .continuingAbandoned
                case .abandoned: .abandoned
                case .ended: .ended
                }
        }
    }

    private enum Event: CaseIterable {
        case awaitActivation, endActivationWait, beginWork, beginStoreRead, endWork, awaitExecution, forward
        case awaitStreams, beginInterception, end, abandon, continueWork, cancel
    }

    /// The phase after each event that changes it. All other events are ignored.
    private static let transitions: [Name: [Event: Name]] = [
        .registered: [
            .awaitActivation: .awaitingActivation, .beginWork: .running, .beginStoreRead: .readingStore,
            .awaitExecution: .awaitingExecution, .forward: .forwarded, .awaitStreams: .awaitingStreams,
            .beginInterception: .intercepted, .end: .ended, .abandon: .abandoned,
        ],
        .awaitingActivation: [
            .endActivationWait: .registered, .cancel: .registered, .end: .ended, .abandon: .abandoned,
        ],
        .running: [.endWork: .registered, .end: .continuing, .abandon: .continuingAbandoned],
        .readingStore: [.endWork: .registered, .end: .continuing, .abandon: .continuingAbandoned],
        .awaitingExecution: [
            .awaitStreams: .awaitingStreams, .beginInterception: .intercepted, .end: .ended, .abandon: .abandoned,
        ],
        .forwarded: [.awaitStreams: .awaitingStreams, .end: .ended, .abandon: .abandoned],
        .awaitingStreams: [.beginInterception: .intercepted, .end: .ended, .abandon: .abandoned],
        .intercepted: [.endWork: .registered, .end: .continuing, .abandon: .continuingAbandoned],
        .continuing: [.endWork: .ended],
        .continuingAbandoned: [.endWork: .abandoned, .end: .continuing],
        .abandoned: [.end: .ended, .continueWork: .continuingAbandoned],
        .ended: [.continueWork: .continuing],
    ]

    /// Runs `body` on a reactor with a function that makes a call in a phase.
    private func withCalls(_ body: @escaping @Sendable ((Name) -> InFlightCall, (InFlightCall, Event) -> Void) -> Void)
        async
    {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            let queue = ActivationQueue()
            func make() -> InFlightCall {
                InFlightCall(callID: [1], after: .seconds(1), on: connection.shard.reactor, byteCount: 10)
            }
            func apply(_ call: InFlightCall, _ event: Event) {
                switch event {
                case .awaitActivation: call.awaitActivation(queue.addWaiter(for: .server, isLarge: false) { _ in })
                case .endActivationWait: _ = call.endActivationWait()
                case .beginWork: call.beginWork()
                case .beginStoreRead: call.beginStoreRead()
                case .endWork: _ = call.endWork()
                case .awaitExecution: call.awaitExecution(make(), nil)
                case .forward: call.forward(Request())
                case .awaitStreams: _ = call.awaitStreams(ResponseBarrier(.none, 0) {})
                case .beginInterception: _ = call.beginInterception()
                case .end: _ = call.end()
                case .abandon: _ = call.end(isAnswered: false)
                case .continueWork: call.continueWork()
                case .cancel: call.cancel()
                }
            }
            let paths: [Name: [Event]] = [
                .registered: [], .awaitingActivation: [.awaitActivation], .running: [.beginWork],
                .readingStore: [.beginStoreRead], .awaitingExecution: [.awaitExecution], .forwarded: [.forward],
                .awaitingStreams: [.awaitStreams], .intercepted: [.beginInterception], .continuing: [.beginWork, .end],
                .continuingAbandoned: [.beginWork, .abandon], .abandoned: [.abandon], .ended: [.end],
            ]
            body(
                { name in
                    let call = make()
                    for event in paths[name] ?? [] { apply(call, event) }
                    #expect(Name(call.phase) == name)
                    return call
                }, apply)
        }
    }

    @Test("each event changes the phase as the table says, and is ignored otherwise")
    func transitions() async {
        await withCalls { make, apply in
            for name in Name.allCases {
                for event in Event.allCases {
                    let call = make(name)
                    apply(call, event)
                    let expected = Self.transitions[name]?[event] ?? name
                    #expect(Name(call.phase) == expected, "\(event) in \(name)")
                }
            }
        }
    }

    @Test("a stopping server answers a call by what may have happened to it, and none that its client repeats")
    func shutdown() async {
        let responses: [Name: InFlightCall.ShutdownResponse] = [
            .registered: .unavailable, .awaitingActivation: .unavailable, .running: .unknownOutcome,
            .readingStore: .unknownOutcome, .awaitingExecution: .none, .forwarded: .unavailable,
            .awaitingStreams: .unavailable, .intercepted: .unavailable,
        ]
        await withCalls { make, _ in
            for (name, response) in responses { #expect(make(name).shutdownResponse == response, "\(name)") }
            let repeated = make(.running)
            repeated.repeated = InFlightCall.OriginalCall(actor: ActorName("a"), home: nil)
            #expect(repeated.shutdownResponse == .none)
        }
    }

    @Test("a call is answered once, in the phases that end with its response or its withdrawal")
    func answered() async {
        await withCalls { make, _ in
            for name in Name.allCases {
                let call = make(name)
                let isAnswered = name == .ended || name == .continuing
                #expect(call.isAnswered == isAnswered, "\(name)")
                let last = call.end()
                #expect((last == nil) == isAnswered, "\(name)")
                if let last { #expect(Name(last) == name) }
                #expect(call.isAnswered && call.end() == nil)
            }
        }
    }

    @Test("a call may have run after it was passed on, whatever follows")
    func mayHaveRun() async {
        await withCalls { make, _ in
            for name in Name.allCases {
                let call = make(name)
                #expect(call.mayHaveRun == (name == .awaitingExecution || name == .forwarded), "\(name)")
                _ = call.end()
                #expect(call.mayHaveRun == (name == .awaitingExecution || name == .forwarded), "\(name)")
            }
        }
    }

    @Test(
        "a wait for an activation ends with its call, whose request to another server is cancelled only by its caller")
    func resources() async {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            let queue = ActivationQueue()
            for isCancelled in [false, true] {
                let call = InFlightCall(callID: [], after: .zero, on: connection.shard.reactor, byteCount: 0)
                call.awaitActivation(queue.addWaiter(for: .server, isLarge: false) { _ in })
                #expect(queue.count == 1)
                if isCancelled { call.cancel() } else { _ = call.end() }
                #expect(queue.count == 0 && call.isCancelled == isCancelled)
                call.awaitActivation(nil)
                let (request, other) = (
                    Request(),
                    InFlightCall(
                        callID: [], after: .zero, on: connection.shard.reactor, byteCount: 0)
                )
                other.forward(request)
                if isCancelled { other.cancel() } else { _ = other.end() }
                #expect(request.isCancelled == isCancelled)
            }
        }
    }
}

@Suite struct InFlightCallsTests {
    private func call(_ callID: UInt8, on rig: ServerConnection, isInTransit: Bool = false) -> InFlightCall {
        InFlightCall(
            callID: [callID], after: .seconds(1), on: rig.shard.reactor, byteCount: 100, isInTransit: isInTransit)
    }

    @Test("a call whose callID is taken is kept, and removed alone")
    func displaced() async {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            var calls = InFlightCalls()
            let (first, second, third) = (
                self.call(1, on: connection), self.call(1, on: connection), self.call(2, on: connection)
            )
            for call in [first, second, third] { calls.list(call) }
            #expect(calls[[1]] === first && calls[[2]] === third && calls.displaced.count == 1 && calls.all.count == 3)
            let removals = [second, second].map { calls.remove($0) }
            #expect(removals == [true, false])
            #expect(calls[[1]] === first)
            let isRemoved = calls.remove(first)
            #expect(isRemoved && calls[[1]] == nil)
            let rest = calls.removeAll()
            #expect(rest.count == 1 && calls.all.isEmpty)
        }
    }

    @Test("a call counts until it is released, or until its work ends")
    func load() async {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            var calls = InFlightCalls()
            let (short, long) = (self.call(1, on: connection), self.call(2, on: connection))
            for call in [short, long] { call.beginWork() }
            let pauses = [short, long].map { calls.count($0) }
            #expect(pauses == [false, false])
            #expect([calls.load.count, calls.load.bytes, calls.load.answered] == [2, 200, 0])
            _ = short.endWork()
            for call in [short, long] { _ = call.end() }
            let resumptions = [short, long].map { calls.release($0) }
            #expect(resumptions == [false, false])
            #expect([calls.load.count, calls.load.bytes, calls.load.answered] == [0, 0, 1])
            #expect(long.endWork())
            let mayResume = calls.releaseWork(of: long)
            #expect(!mayResume)
            #expect([calls.load.count, calls.load.bytes, calls.load.answered] == [0, 0, 0])
        }
    }

    @Test("reading pauses at the limit of calls in transit, and resumes when half of them have returned")
    func pause() async {
        let rig = await ServerConnectionTests.Rig()
        await rig.on { connection in
            var calls = InFlightCalls()
            let all = (0..<CallLoad.maximumInTransitCalls).map { _ in self.call(1, on: connection, isInTransit: true) }
            let pauses = all.map { calls.count($0) }
            #expect(pauses.firstIndex(of: true) == all.count - 1)
            let further = calls.countInTransit(bytes: 1)
            #expect(!further, "reading is paused already")
            calls.releaseInTransit(bytes: 1)
            let resumptions = all.map { call in
                _ = call.end()
                return calls.release(call)
            }
            #expect(resumptions.firstIndex(of: true) == all.count / 2 - 1)
            #expect(resumptions.count { $0 } == 1 && calls.load.inTransit == 0 && calls.load.bytesInTransit == 0)
        }
    }
}
