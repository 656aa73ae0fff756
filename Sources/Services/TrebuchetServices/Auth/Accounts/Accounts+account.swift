internal import Trebuchet

/// Operations on a whole account.
extension Accounts {
    // MARK: Change of address

    func sendAddressCode(
        to email: String, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let address = try MailAddress(email)
        return try await loggingRefusals("to send a code to \(address.text)", connection) { () throws(AuthError) in
            let present = try await present(on: connection)
            // A new address gives permanent access to an account, so a session alone, which may be stolen, is not enough.
            guard isFresh(present) else { throw .notFresh }
            return try await sendCode(to: address, .address(account: present.id), for: connection)
        }
    }

    func changeAddress(
        to email: String, code: String, on connection: CallerConnection
    ) async throws(AuthError) -> User {
        let address = try MailAddress(email)
        return try await loggingRefusals("the address \(address.text)", connection) { () throws(AuthError) in
            let caller = try await present(on: connection)
            try await useCode(code, for: address, .address(account: caller.id), on: connection)
            let (user, before) = try await inTurn(of: connection) { transaction throws(AuthError) in
                let present = try await present(on: connection, in: transaction)
                guard present.id == caller.id else { throw .notSignedIn }
                if let owner = try await transaction.owner(ofAddress: address.text), owner != present.id {
                    throw .addressTaken
                }
                var account = present.account
                let before = account.email
                account.email = address.text
                var changes = AccountRecords.Changes()
                if let before {
                    _ = try await transaction.owner(ofAddress: before)
                    changes.set(owner: nil, ofAddress: before)
                }
                changes.set(owner: present.id, ofAddress: address.text)
                try changes.set(account, id: present.id)
                let user = account.user(id: present.id)
                changes.change(user, sessions: account.sessions)
                changes.count.replace(present.account, with: account)
                try await write(changes, in: transaction)
                return (user, before == address.text ? nil : before)
            }
            if let before { await sendNotice(before, .addressChanged(to: address.text)) }
            return user
        }
    }

    /// Sends a notice by mail. The operation stays done when that fails.
    private func sendNotice(_ address: String, _ notice: AccountNotice) async {
        do {
            try await mailer.send(notice, to: address)
        } catch {
            log.mailFailed("a notice was not sent: \(error)")
        }
    }

    /// Returns whether the user has signed in recently. Guests always pass, because they cannot sign in again.
    private func isFresh(_ present: SignedInCaller) -> Bool {
        // A sign-in by a clock that was ahead is not recent for as long.
        let age = now() - (present.family.created ?? 0)
        return present.account.isGuest || age >= -1_000 && age < limits.recentSignInTime.wholeMilliseconds
    }

    // MARK: Deletion

    /// - Parameter code: a sign-in code that was sent to the account's address; nil after a recent sign-in.
    func deleteAccount(code: String?, on connection: CallerConnection) async throws(AuthError) {
        try await loggingRefusals("to delete an account", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            let caller = try await present(on: connection)
            if let code {
                guard let email = caller.account.email else { throw .notFresh }
                try await useCode(code, for: try MailAddress(email), .signIn, on: connection)
            } else {
                guard isFresh(caller) else { throw .notFresh }
            }
            do {
                // Not in the transaction: the hook may be slow, and other sign-ins must not wait for it.
                try await deletionHook?(caller.account.user(id: caller.id))
            } catch {
                log.storeFailed("the data of account \(caller.id) was not deleted: \(error)")
                throw .notDeleted
            }
            let own = connection.session == caller.session ? connection : nil
            if try await delete(caller.id, because: .accountDeleted, leaving: own) {
                log.deleted(caller.id, by: "its user")
            }
        }
    }

    /// Deletes the records of an account and ends its sessions; returns false when there is no such account.
    ///
    /// - Parameter connection: a connection that becomes anonymous.
    func delete(
        _ id: String, because end: SessionEndReason, leaving connection: CallerConnection? = nil
    ) async throws(AuthError) -> Bool {
        try await inTurn(of: connection) { transaction throws(AuthError) in
            guard let account = try await transaction.account(id) else { return false }
            var changes = AccountRecords.Changes()
            for session in account.sessions { changes.endSession(session, because: end) }
            if let email = account.email { changes.set(owner: nil, ofAddress: email) }
            for identity in account.identities ?? [] { changes.set(owner: nil, ofIdentity: identity) }
            try changes.set(nil, id: id)
            changes.count.replace(account, with: nil)
            try await write(changes, in: transaction)
            if let connection { connections.signOut(connection) }
            await connections.endSessions(account.sessions, because: end, at: now())
            return true
        }
    }
}
