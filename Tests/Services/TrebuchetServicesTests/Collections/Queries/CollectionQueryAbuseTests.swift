import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Too many, too large and too frequent queries.
@Suite(.timeLimit(.minutes(5))) struct CollectionQueryAbuseTests {
    private func connected(_ environment: CollectionTestEnvironment, _ name: String) async throws
        -> CollectionTestClient
    {
        let guest = environment.guest(name)
        try await guest.client.connect()
        return guest
    }

    @Test("an oversized query is refused before it is processed, also when it is to be closed")
    func sizes() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = try await connected(environment, "ada")
            let collection = try guest.collection()
            let many = CollectionQuery(
                where: (0..<8_000).map { .field("field\($0)", equals: .string("\($0)")) })
            /// Returns the time of some refused calls.
            func refusals() async throws -> Duration {
                let begun = ContinuousClock.now
                for _ in 0..<3 {
                    for call in [{ _ = try await collection.open(many) }, { try await collection.close(many) }] {
                        let error = await #expect(throws: CollectionError.self) { try await call() }
                        guard case .invalidQuery(let reason)? = error, reason.hasSuffix("16384 are allowed") else {
                            Issue.record("\(String(describing: error))")
                            return .zero
                        }
                    }
                }
                return ContinuousClock.now - begun
            }
            let alone = try await refusals()
            for limit in 1...40 { _ = try await collection.open(CollectionQuery(limit: limit)) }
            // The query is not normalized once for each open query.
            let besides = try await refusals()
            #expect(besides < alone * 10 + .seconds(1), "\(alone), \(besides)")
        }
    }

    @Test("repeatedly opening and closing a query leaves no state")
    func openedAndClosed() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = try await connected(environment, "ada")
            let collection = try guest.collection()
            for _ in 0..<20 {
                _ = try await collection.open(.all)
                try await collection.close(.all)
            }
            _ = try await collection.open(.all)
            #expect(environment.host.closeHandlerCount <= 3)
        }
    }

    @Test("opening, closing and loading queries is rate limited per connection; others are unaffected")
    func rate() async throws {
        var limits = CollectionLimits()
        limits.readsPerConnection = RateLimit(callsPerSecond: 0.001, burst: 3)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (try await connected(environment, "ada"), try await connected(environment, "bob"))
            let collection = try ada.collection()
            _ = try await collection.open(.all)
            _ = try await collection.get(.all)
            try await collection.close(.all)
            for call in [
                { _ = try await collection.open(.all) }, { _ = try await collection.get(.all) },
                { try await collection.close(.all) },
            ] {
                let error = await #expect(throws: CollectionError.self) { try await call() }
                guard case .rateLimited? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
            _ = try await bob.collection().open(.all)
        }
    }

    @Test("a principal's queries count over all of its connections, as long as a query is retained")
    func shares() async throws {
        var limits = CollectionLimits()
        limits.queriesPerPrincipal = 3
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guests = [try await connected(environment, "ada"), try await connected(environment, "ada")]
            for limit in 1...3 {
                for guest in guests { _ = try await guest.collection().open(CollectionQuery(limit: limit)) }
            }
            for guest in guests {
                await #expect(throws: CollectionError.tooManyQueries(limit: 3)) {
                    try await guest.collection().open(CollectionQuery(limit: 4))
                }
            }
            let bob = try await connected(environment, "bob")
            _ = try await bob.collection().open(CollectionQuery(limit: 4))
            // Bob has opened this query: it counts for Ada all the same.
            await #expect(throws: CollectionError.tooManyQueries(limit: 3)) {
                try await guests[0].collection().open(CollectionQuery(limit: 4))
            }
            await guests[0].client.close()
            try await guests[1].collection().close(CollectionQuery(limit: 1))
            #expect(await eventually { environment.host.queryCount == 3 })
            _ = try await guests[1].collection().open(CollectionQuery(limit: 4))
        }
    }
}
