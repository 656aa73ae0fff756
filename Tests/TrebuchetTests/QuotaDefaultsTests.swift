import Platform
import Networking
import Testing
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// What one party may have of the whole by default.
@Suite struct QuotaDefaultsTests {
    @Test("until it has heard others, a client goes by the terms of a server whose settings nobody has changed")
    func usualTerms() { #expect(AdvertisedLimits.usual == ServerLimits().terms(for: ServerLimits().ofClient)) }

    /// The whole, and what a principal and a host may have of it.
    private static let shares: [(String, whole: Int, principal: Int, host: Int)] = {
        let limits = ServerLimits()
        let host = SocketAddress(literal: "192.0.2.1", port: 1).flatMap { AddressKey($0) }.map {
            QuotaScope.host($0.number)
        }!
        return SharedResource.allCases.map { resource in
            (
                resource.name, limits.share(of: resource, .server).limit,
                limits.share(of: resource, .principal(PrincipalName("ada"))).limit,
                limits.share(of: resource, host).limit
            )
        } + [
            (
                "recordedResponses", limits.recordedResponses, limits.recordedResponsesPerPrincipal,
                limits.recordedResponsesPerHost
            ),
            (
                "answer bytes", limits.recordedResponseBytes, limits.recordedResponseBytesPerPrincipal,
                limits.recordedResponseBytesPerHost
            ),
            (
                "calls to clients", limits.callsToClients, limits.callsToClientsPerPrincipal,
                limits.callsToClientsPerHost
            ),
        ]
    }()

    @Test("sixteen hosts or principals have to come together to use up what is counted", arguments: shares.indices)
    func sixteenth(index: Int) {
        let (name, whole, principal, host) = Self.shares[index]
        #expect(principal * 16 <= whole, "\(name)")
        #expect(host * 16 <= whole, "\(name)")
    }
}
