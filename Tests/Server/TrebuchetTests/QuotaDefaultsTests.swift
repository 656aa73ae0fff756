import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The default quotas of one principal or host.
@Suite struct QuotaDefaultsTests {
    @Test("the client's default limits equal those of a server with default settings")
    func usualTerms() { #expect(AdvertisedLimits.usual == ServerLimits().terms(for: ServerLimits().ofClient)) }

    @Test(
        "only sixteen hosts or principals together can use up a limit, and four the buffered memory",
        arguments: SharedResource.allCases)
    func sixteenth(resource: SharedResource) {
        let quotas = ServerLimits().quotas(of: resource)
        let parts = resource == .clientCallBytes ? 4 : 16
        #expect(quotas.principal.value * parts <= quotas.server.value)
        #expect(quotas.host.value * parts <= quotas.server.value)
    }
}
