import Platform
import Bytes
import Networking
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("Quotas of calls to clients")
struct ClientCallQuotaUsageTests {
    /// The quota usage of one client at a host, signed in as Ada, and of all clients.
    private struct Scene {
        let quotas: ClientCallQuotas
        let shares: ClientCallQuotaUsage
        let memory = MemoryBudget(limit: 10_000)

        init(_ change: (inout ServerLimits) -> Void) throws {
            var limits = ServerLimits()
            limits.bufferedBytesPerHost = 5_000
            change(&limits)
            quotas = ClientCallQuotas(limits, memory: memory, principalMemory: PrincipalMemory(limit: 5_000))
            let host = try #require(AddressKey(SocketAddress(host: "192.0.2.1", port: 1, isIPv6: false)))
            shares = ClientCallQuotaUsage(quotas, QuotaScopes(connection: 1, principal: "Ada", host: host))
        }

        /// In-flight calls of all clients, of Ada and of the host; bytes of the host and in all.
        var used: [Int] {
            get throws {
                let host = try #require(AddressKey(SocketAddress(host: "192.0.2.1", port: 1, isIPv6: false)))
                return [
                    quotas.calls.count, quotas.principals.share(of: PrincipalName("Ada")).quota.count,
                    quotas.hosts.share(of: host).count, quotas.hostBytes.share(of: host).count,
                    memory.usedBytes,
                ]
            }
        }
    }

    @Test(
        "a call over the quota is rejected with the limit's name and value, and reserves nothing",
        arguments: [
            "callsPerClient", "callBytesPerClient", "callsToClients", "callsToClientsPerPrincipal",
            "callsToClientsPerHost", "bufferedBytesPerHost",
        ])
    func refused(setting: String) throws {
        let scene = try Scene { limits in
            switch setting {
            case "callsPerClient": limits.callsPerClient = 2
            case "callBytesPerClient": limits.callBytesPerClient = 200
            case "callsToClients": limits.callsToClients = 2
            case "callsToClientsPerPrincipal": limits.callsToClientsPerPrincipal = 2
            case "callsToClientsPerHost": limits.callsToClientsPerHost = 2
            default: limits.bufferedBytesPerHost = 200
            }
        }
        for _ in 0..<2 { try scene.shares.reserve(100) }
        #expect(try scene.used == [2, 2, 2, 200, 200])
        let error = #expect(throws: TrebuchetError.self) { try scene.shares.reserve(100) }
        #expect(error?.code == .rateLimited)
        #expect(error?.message.contains(setting) == true)
        #expect(try scene.used == [2, 2, 2, 200, 200])
        scene.shares.release(100)
        #expect(try scene.used == [1, 1, 1, 100, 100])
        try scene.shares.reserve(100)
        #expect(try scene.used == [2, 2, 2, 200, 200])
    }
}
