import Testing

@testable import Trebuchet

@Suite struct CallRouterTests {
    struct Row: CustomTestStringConvertible {
        let testDescription: String
        let path: CallPath
        let traits: CallTraits
        let isDuplicate: Bool

        init(
            _ description: String, _ path: CallPath, isDuplicate: Bool = false,
            _ change: (inout CallTraits) -> Void = { _ in }
        ) {
            var traits = CallTraits()
            change(&traits)
            (testDescription, self.path, self.traits, self.isDuplicate) = (description, path, traits, isDuplicate)
        }
    }

    static let rows = [
        Row("another server owns the actor", .forwarded) { $0.place = .otherServer },
        Row("another server owns the actor, and the method is unknown here", .forwarded) {
            ($0.place, $0.hasMethod) = (.otherServer, false)
        },
        Row("no actor has the name", .rejected(.actorNotFound)) { ($0.place, $0.hasMethod) = (.unknown, false) },
        Row("the actor has no such method", .rejected(.methodNotFound)) { $0.hasMethod = false },
        Row("an inactive actor has no such method", .rejected(.methodNotFound)) {
            ($0.place, $0.hasMethod) = (.inactive, false)
        },
        Row("an argument is missing", .rejected(.argumentCount)) { $0.hasArgumentCount = false },
        Row("a generic substitution is missing", .rejected(.genericCount)) { $0.hasGenericCount = false },
        Row("both are missing", .rejected(.argumentCount)) {
            ($0.hasArgumentCount, $0.hasGenericCount) = (false, false)
        },
        Row("an idempotent call that lacks an argument", .rejected(.argumentCount)) {
            ($0.isIdempotent, $0.hasSession, $0.hasArgumentCount) = (true, true, false)
        },

        Row("idempotent", .idempotent) { ($0.isIdempotent, $0.hasSession) = (true, true) },
        Row("idempotent and synchronous", .idempotent) {
            ($0.isIdempotent, $0.hasSession, $0.isSynchronous) = (true, true, true)
        },
        Row("idempotent, of an inactive actor", .idempotent) {
            ($0.isIdempotent, $0.hasSession, $0.place) = (true, true, .inactive)
        },
        Row("idempotent without a session", .inPlace) { ($0.isIdempotent, $0.isSynchronous) = (true, true) },
        Row("a session for a method that is not idempotent", .inPlace) {
            ($0.hasSession, $0.isSynchronous) = (true, true)
        },

        Row("synchronous", .inPlace) { $0.isSynchronous = true },
        Row("synchronous, with metadata", .task) { ($0.isSynchronous, $0.hasMetadata) = (true, true) },
        Row("synchronous and intercepted", .task) { ($0.isSynchronous, $0.isIntercepted) = (true, true) },
        Row("persisted, with metadata", .task) {
            ($0.isSynchronous, $0.isPersisted, $0.hasMetadata) = (true, true, true)
        },
        Row("suspending, with metadata", .task) { $0.hasMetadata = true },
        Row("suspending and intercepted", .task) { $0.isIntercepted = true },
        Row("synchronous elsewhere, with metadata", .task) {
            ($0.isSynchronous, $0.place, $0.hasMetadata) = (true, .otherReactor, true)
        },
        Row("synchronous elsewhere and intercepted", .task) {
            ($0.isSynchronous, $0.place, $0.isIntercepted) = (true, .otherReactor, true)
        },
        Row("idempotent, intercepted, with metadata", .idempotent) {
            ($0.isIdempotent, $0.hasSession, $0.isIntercepted, $0.hasMetadata) = (true, true, true, true)
        },
        Row("idempotent without a session, intercepted", .task) {
            ($0.isIdempotent, $0.isSynchronous, $0.isIntercepted) = (true, true, true)
        },
        Row("intercepted, and an argument is missing", .rejected(.argumentCount)) {
            ($0.isIntercepted, $0.hasArgumentCount) = (true, false)
        },
        Row("intercepted, and another server owns the actor by now", .forwarded) {
            ($0.isIntercepted, $0.place) = (true, .otherServer)
        },

        Row("synchronous, whatever the connection is", .inPlace, isDuplicate: true) {
            $0.isSynchronous = true
            ($0.isOpen, $0.isOfOtherServer, $0.isCounted, $0.hostsActors) = (false, true, true, true)
            $0.needsSeparateTask = true
        },
        Row("synchronous and observed", .observed) { ($0.isSynchronous, $0.isObserved) = (true, true) },
        Row("synchronous and persisted", .persisted) { ($0.isSynchronous, $0.isPersisted) = (true, true) },
        Row("synchronous, persisted and observed", .persisted) {
            ($0.isSynchronous, $0.isPersisted, $0.isObserved) = (true, true, true)
        },
        Row("synchronous behind calls that start", .queued) { ($0.isSynchronous, $0.hasStartingCalls) = (true, true) },
        Row("synchronous and persisted behind calls that start", .task) {
            ($0.isSynchronous, $0.isPersisted, $0.hasStartingCalls) = (true, true, true)
        },
        Row("synchronous and observed behind calls that start", .task) {
            ($0.isSynchronous, $0.isObserved, $0.hasStartingCalls) = (true, true, true)
        },

        Row("suspending", .queued),
        Row("suspending, at a server of the client's server", .queued) { $0.isOfOtherServer = true },
        Row("suspending and persisted", .task) { $0.isPersisted = true },
        Row("suspending and observed", .task) { $0.isObserved = true },
        Row("suspending, of a client with actors", .task) { $0.hostsActors = true },
        Row("suspending, counted before", .task) { $0.isCounted = true },
        Row("suspending, after a call that suspended", .task) { $0.needsSeparateTask = true },
        Row("suspending, with a used callID", .task, isDuplicate: true),

        Row("synchronous elsewhere", .crossReactor) { ($0.isSynchronous, $0.place) = (true, .otherReactor) },
        Row("synchronous elsewhere, with traits that do not matter", .crossReactor) {
            ($0.isSynchronous, $0.place) = (true, .otherReactor)
            ($0.isCounted, $0.hostsActors, $0.needsSeparateTask, $0.hasStartingCalls) = (true, true, true, true)
        },
        Row("suspending elsewhere", .task) { $0.place = .otherReactor },
        Row("synchronous elsewhere and persisted", .task) {
            ($0.isSynchronous, $0.place, $0.isPersisted) = (true, .otherReactor, true)
        },
        Row("synchronous elsewhere and observed", .task) {
            ($0.isSynchronous, $0.place, $0.isObserved) = (true, .otherReactor, true)
        },
        Row("synchronous elsewhere, of a client of another server", .task) {
            ($0.isSynchronous, $0.place, $0.isOfOtherServer) = (true, .otherReactor, true)
        },
        Row("synchronous elsewhere, over a closed connection", .task) {
            ($0.isSynchronous, $0.place, $0.isOpen) = (true, .otherReactor, false)
        },
        Row("synchronous elsewhere, with a used callID", .task, isDuplicate: true) {
            ($0.isSynchronous, $0.place) = (true, .otherReactor)
        },

        Row("inactive", .task) { ($0.isSynchronous, $0.place) = (true, .inactive) },
        Row("without a reactor", .task) { ($0.isSynchronous, $0.place) = (true, .noReactor) },
    ]

    @Test("each call takes the path of its traits", arguments: rows)
    func path(row: Row) {
        #expect(CallRouter.path(of: row.traits) { row.isDuplicate } == row.path)
    }

    @Test("the rows have every path")
    func all() {
        var paths: [CallPath] = [
            .inPlace, .observed, .persisted, .queued, .crossReactor, .task, .idempotent, .forwarded,
        ]
        paths += CallRejection.allCases.map { .rejected($0) }
        for path in paths { #expect(Self.rows.contains { $0.path == path }, "\(path)") }
    }

    @Test("the fast check agrees with the router for every call that needs no other check")
    func inPlace() {
        for bits in 0..<16 {
            for place in CallTraits.Place.allCases where place != .unknown && place != .otherServer {
                var traits = CallTraits()
                traits.place = place
                traits.isSynchronous = bits & 1 != 0
                traits.isPersisted = bits & 2 != 0
                traits.hasStartingCalls = bits & 4 != 0
                traits.isObserved = bits & 8 != 0
                let isInPlace = traits.isSynchronous && place == .thisReactor && !traits.hasStartingCalls
                let expected: CallPath? =
                    !isInPlace ? nil : traits.isPersisted ? .persisted : traits.isObserved ? .observed : .inPlace
                #expect(CallRouter.inPlacePath(of: traits) == expected)
            }
        }
    }

    @Test("the callID is compared only where the call is not registered")
    func comparison() {
        for row in Self.rows {
            var isCompared = false
            let path = CallRouter.path(of: row.traits) {
                isCompared = true
                return row.isDuplicate
            }
            #expect(isCompared == ([.queued, .crossReactor].contains(path) || row.isDuplicate && path == .task))
        }
    }
}
