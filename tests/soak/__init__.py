"""A server with policies that many sessions come to and go from: does it keep anything of them?"""
