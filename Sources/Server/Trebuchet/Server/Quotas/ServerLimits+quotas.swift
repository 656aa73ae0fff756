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

    init(own: QuotaLimit, principal: QuotaLimit, host: QuotaLimit, server: QuotaLimit) {
        (self.own, self.principal, self.host, self.server) = (own, principal, host, server)
    }

    /// Creates the limits of a group of settings whose names are those of the scopes.
    ///
    /// - Parameter scope: The name of the setting for the narrowest scope.
    fileprivate init(
        _ group: String, own: Int, principal: Int, host: Int, total: Int, scope: String = "perConnection"
    ) {
        self.init(
            own: QuotaLimit(own, "\(group).\(scope)"), principal: QuotaLimit(principal, "\(group).perPrincipal"),
            host: QuotaLimit(host, "\(group).perHost"), server: QuotaLimit(total, "\(group).total"))
    }

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
            streamsPerConnection: connection.streams, messageSize: messages.inboundBytes,
            clientActorsPerClient: clientActors.perClient, clientAnswerSize: clientCalls.responseBytes)
    }

    /// Returns the limits of a resource.
    func quotas(of resource: SharedResource) -> ResourceQuotas {
        switch resource {
        case .connections:
            ResourceQuotas(
                own: QuotaLimit(1, "connections.total"),
                principal: QuotaLimit(connections.perPrincipal, "connections.perPrincipal"),
                host: QuotaLimit(connections.perHost, "connections.perHost"),
                server: QuotaLimit(connections.total, "connections.total"))
        case .streams:
            ResourceQuotas(
                "streams", own: streams.perConnection, principal: streams.perPrincipal, host: streams.perHost,
                total: streams.total)
        case .filters:
            ResourceQuotas(
                "filters", own: filters.perConnection, principal: filters.perPrincipal, host: filters.perHost,
                total: filters.total)
        case .actorsOnDemand:
            ResourceQuotas(
                "activatedActors", own: activatedActors.perConnection, principal: activatedActors.perPrincipal,
                host: activatedActors.perHost, total: activatedActors.total)
        case .clientActors:
            ResourceQuotas(
                "clientActors", own: clientActors.perClient, principal: clientActors.perPrincipal,
                host: clientActors.perHost, total: clientActors.total, scope: "perClient")
        case .clientCalls:
            ResourceQuotas(
                "clientCalls", own: clientCalls.perClient, principal: clientCalls.perPrincipal,
                host: clientCalls.perHost, total: clientCalls.total, scope: "perClient")
        case .clientCallBytes:
            ResourceQuotas(
                own: QuotaLimit(clientCalls.bytesPerClient, "clientCalls.bytesPerClient"),
                principal: QuotaLimit(memory.ofPrincipal, "memory.perPrincipal"),
                host: QuotaLimit(memory.ofHost, "memory.perHost"),
                server: QuotaLimit(memory.total, "memory.total"))
        case .recordedResponses:
            ResourceQuotas(
                "idempotency", own: idempotency.perConnection, principal: idempotency.perPrincipal,
                host: idempotency.perHost, total: idempotency.total)
        case .recordedResponseBytes, .persistedResponseBytes:
            ResourceQuotas(
                own: QuotaLimit(idempotency.bytesPerConnection, "idempotency.bytesPerConnection"),
                principal: QuotaLimit(idempotency.bytesPerPrincipal, "idempotency.bytesPerPrincipal"),
                host: QuotaLimit(idempotency.bytesPerHost, "idempotency.bytesPerHost"),
                server: QuotaLimit(idempotency.totalBytes, "idempotency.totalBytes"))
        case .httpRequests:
            ResourceQuotas(
                own: QuotaLimit(http.total, "http.total"),
                principal: QuotaLimit(http.perPrincipal, "http.perPrincipal"),
                host: QuotaLimit(http.perHost, "http.perHost"), server: QuotaLimit(http.total, "http.total"))
        }
    }
}
