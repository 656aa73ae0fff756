internal import TrebuchetWire

extension QuotaScope {
    /// The kinds of scopes that differ in their limits.
    enum Kind: Int, CaseIterable {
        /// A connection or a client.
        case own
        case principal, host, network, server
    }

    var kind: Kind {
        switch self {
        case .connection, .client: .own
        case .principal: .principal
        case .host: .host
        case .network: .network
        case .server: .server
        }
    }
}

/// The limit of one scope for a resource, with the name of its setting.
struct QuotaLimit: Sendable {
    let value: Int
    let setting: String

    init(_ value: Int, _ setting: String) { (self.value, self.setting) = (value, setting) }
}

/// The limits of all kinds of scopes for one resource.
struct ResourceQuotas {
    let own: QuotaLimit
    let principal: QuotaLimit
    let host: QuotaLimit
    let server: QuotaLimit

    subscript(kind: QuotaScope.Kind) -> QuotaLimit {
        switch kind {
        case .own: own
        case .principal: principal
        case .host: host
        case .network: QuotaLimit(NetworkQuota.limit(host.value), host.setting)
        case .server: server
        }
    }
}

extension ServerLimits {
    /// Returns the limits that the server announces to clients.
    func terms(for connection: ConnectionLimits) -> AdvertisedLimits {
        AdvertisedLimits(
            callsPerConnection: connection.calls, callBytesPerConnection: connection.callBytes,
            streamsPerConnection: connection.streams, messageSize: messageSize,
            clientActorsPerClient: clientActorsPerClient, clientAnswerSize: clientResponseSize)
    }

    /// `bufferedBytesPerPrincipal` with its default.
    var bufferedBytesOfPrincipal: Int { bufferedBytesPerPrincipal ?? bufferedBytes / 4 }

    /// Returns the limits of a resource.
    func quotas(of resource: SharedResource) -> ResourceQuotas {
        switch resource {
        case .connections:
            ResourceQuotas(
                own: QuotaLimit(1, "connections"),
                principal: QuotaLimit(connectionsPerPrincipal, "connectionsPerPrincipal"),
                host: QuotaLimit(connectionsPerHost, "connectionsPerHost"),
                server: QuotaLimit(connections, "connections"))
        case .streams:
            ResourceQuotas(
                own: QuotaLimit(streamsPerConnection, "streamsPerConnection"),
                principal: QuotaLimit(streamsPerPrincipal, "streamsPerPrincipal"),
                host: QuotaLimit(streamsPerHost, "streamsPerHost"), server: QuotaLimit(streams, "streams"))
        case .filters:
            ResourceQuotas(
                own: QuotaLimit(filtersPerConnection, "filtersPerConnection"),
                principal: QuotaLimit(filtersPerPrincipal, "filtersPerPrincipal"),
                host: QuotaLimit(filtersPerHost, "filtersPerHost"), server: QuotaLimit(filters, "filters"))
        case .actorsOnDemand:
            ResourceQuotas(
                own: QuotaLimit(activatedActorsPerConnection, "activatedActorsPerConnection"),
                principal: QuotaLimit(activatedActorsPerPrincipal, "activatedActorsPerPrincipal"),
                host: QuotaLimit(activatedActorsPerHost, "activatedActorsPerHost"),
                server: QuotaLimit(activatedActors, "activatedActors"))
        case .clientActors:
            ResourceQuotas(
                own: QuotaLimit(clientActorsPerClient, "clientActorsPerClient"),
                principal: QuotaLimit(clientActorsPerPrincipal, "clientActorsPerPrincipal"),
                host: QuotaLimit(clientActorsPerHost, "clientActorsPerHost"),
                server: QuotaLimit(clientActors, "clientActors"))
        case .clientCalls:
            ResourceQuotas(
                own: QuotaLimit(callsPerClient, "callsPerClient"),
                principal: QuotaLimit(callsToClientsPerPrincipal, "callsToClientsPerPrincipal"),
                host: QuotaLimit(callsToClientsPerHost, "callsToClientsPerHost"),
                server: QuotaLimit(callsToClients, "callsToClients"))
        case .clientCallBytes:
            ResourceQuotas(
                own: QuotaLimit(callBytesPerClient, "callBytesPerClient"),
                principal: QuotaLimit(bufferedBytesOfPrincipal, "bufferedBytesPerPrincipal"),
                host: QuotaLimit(bufferedBytesPerHost ?? bufferedBytes / 4, "bufferedBytesPerHost"),
                server: QuotaLimit(bufferedBytes, "bufferedBytes"))
        case .recordedResponses:
            ResourceQuotas(
                own: QuotaLimit(recordedResponsesPerConnection, "recordedResponsesPerConnection"),
                principal: QuotaLimit(recordedResponsesPerPrincipal, "recordedResponsesPerPrincipal"),
                host: QuotaLimit(recordedResponsesPerHost, "recordedResponsesPerHost"),
                server: QuotaLimit(recordedResponses, "recordedResponses"))
        case .recordedResponseBytes, .persistedResponseBytes:
            ResourceQuotas(
                own: QuotaLimit(recordedResponseBytesPerConnection, "recordedResponseBytesPerConnection"),
                principal: QuotaLimit(recordedResponseBytesPerPrincipal, "recordedResponseBytesPerPrincipal"),
                host: QuotaLimit(recordedResponseBytesPerHost, "recordedResponseBytesPerHost"),
                server: QuotaLimit(recordedResponseBytes, "recordedResponseBytes"))
        }
    }
}
