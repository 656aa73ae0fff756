internal import TrebuchetWire

extension ServerLimits {
    /// Returns the limits that the server announces to clients.
    func terms(for connection: ConnectionLimits) -> AdvertisedLimits {
        AdvertisedLimits(
            callsPerConnection: connection.calls, callBytesPerConnection: connection.callBytes,
            streamsPerConnection: connection.streams, messageSize: messageSize,
            clientActorsPerClient: clientActorsPerClient, clientAnswerSize: clientResponseSize)
    }

    /// Returns how much of a resource a scope may use, and the name of that setting.
    func share(of resource: SharedResource, _ scope: QuotaScope) -> (limit: Int, setting: String) {
        if case .network = scope {
            let (limit, setting) = share(of: resource, .host(0))
            return (NetworkQuota.limit(limit), setting)
        }
        return switch (resource, scope) {
        case (.connections, .server): (connections, "connections")
        case (.connections, .connection), (.connections, .client): (1, "connections")
        case (.connections, .principal): (connectionsPerPrincipal, "connectionsPerPrincipal")
        case (.connections, .host), (.connections, .network): (connectionsPerHost, "connectionsPerHost")
        case (.streams, .server): (streams, "streams")
        case (.streams, .connection), (.streams, .client): (streamsPerConnection, "streamsPerConnection")
        case (.streams, .principal): (streamsPerPrincipal, "streamsPerPrincipal")
        case (.streams, .host), (.streams, .network): (streamsPerHost, "streamsPerHost")
        case (.filters, .server): (filters, "filters")
        case (.filters, .connection), (.filters, .client): (filtersPerConnection, "filtersPerConnection")
        case (.filters, .principal): (filtersPerPrincipal, "filtersPerPrincipal")
        case (.filters, .host), (.filters, .network): (filtersPerHost, "filtersPerHost")
        case (.actorsOnDemand, .server): (activatedActors, "activatedActors")
        case (.actorsOnDemand, .connection), (.actorsOnDemand, .client):
            (activatedActorsPerConnection, "activatedActorsPerConnection")
        case (.actorsOnDemand, .principal): (activatedActorsPerPrincipal, "activatedActorsPerPrincipal")
        case (.actorsOnDemand, .host), (.actorsOnDemand, .network): (activatedActorsPerHost, "activatedActorsPerHost")
        case (.clientActors, .server): (clientActors, "clientActors")
        case (.clientActors, .connection), (.clientActors, .client): (clientActorsPerClient, "clientActorsPerClient")
        case (.clientActors, .principal): (clientActorsPerPrincipal, "clientActorsPerPrincipal")
        case (.clientActors, .host), (.clientActors, .network): (clientActorsPerHost, "clientActorsPerHost")
        }
    }
}
