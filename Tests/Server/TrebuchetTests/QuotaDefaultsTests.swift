import Platform
import Networking
import Testing
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The default quotas of one principal or host.
@Suite struct QuotaDefaultsTests {
    @Test("the client's default limits equal those of a server with default settings")
    func usualTerms() { #expect(AdvertisedLimits.usual == ServerLimits().terms(for: ServerLimits().ofClient)) }

    /// The server's limit and the quotas of a principal and a host.
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

    @Test("only sixteen hosts or principals together can use up a limit", arguments: shares.indices)
    func sixteenth(index: Int) {
        let (name, whole, principal, host) = Self.shares[index]
        #expect(principal * 16 <= whole, "\(name)")
        #expect(host * 16 <= whole, "\(name)")
    }
}
